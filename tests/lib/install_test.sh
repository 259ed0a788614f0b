#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an embedder gets: installs into a prefix of its own, builds examples/hello.c through pkg-config against the shared
# and the static library, runs both, and looks at what the libraries export. install_test.sh BUILD SOURCE CC...
set -u
build=$1 source=$2
shift 2
cc=("$@") # the compiler may be two words: a cache and what it calls
[ ${#cc[@]} -gt 0 ] || cc=(cc)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
number=0 failures=0
check() { # what, command…
	local what=$1
	shift
	number=$((number + 1))
	if "$@" >"$tmp/log" 2>&1; then
		echo "ok $number - $what"
	else
		echo "not ok $number - $what"
		sed 's/^/# /' "$tmp/log" | head -40
		failures=$((failures + 1))
	fi
}

check "installs below a prefix" meson install -C "$build" --no-rebuild --destdir "$tmp/dest"
prefix=$(dirname "$(find "$tmp/dest" -name stead.h -printf '%h')")
libdir=$(dirname "$(find "$tmp/dest" -name libstead.a)")
export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_ALLOW_SYSTEM_LIBS=
# The .pc file names the final prefix; relocate it to the staged files.
config() { pkg-config --define-variable=prefix="$prefix" "$@" stead; }
sanitize=()
grep -q fsanitize=address "$build/build.ninja" && sanitize+=(-fsanitize=address,undefined)
grep -q fsanitize=thread "$build/build.ninja" && sanitize+=(-fsanitize=thread)

expected() {
	cat <<-'END'
		event: write notes/hello.md
		read 8 bytes: # Hello
		event: write notes/hello.md
		# Good morning
	END
}
runs() { # program, directory
	"$1" "$2" >"$tmp/out" || return 1
	diff <(expected) <(head -4 "$tmp/out") && grep -qx 'refused, as expected' "$tmp/out" &&
		grep -qx 'notes/hello.md 15' "$tmp/out"
}
shared() {
	# shellcheck disable=SC2046
	"${cc[@]}" "${sanitize[@]}" -std=c11 -Wall -Wextra -Werror "$source/examples/hello.c" \
		$(config --cflags --libs) -Wl,-rpath,"$libdir" -o "$tmp/shared"
}
static() {
	local libs
	libs=$(config --static --libs)
	# shellcheck disable=SC2046,SC2086
	"${cc[@]}" "${sanitize[@]}" -std=c11 -Wall -Wextra -Werror "$source/examples/hello.c" $(config --cflags) \
		${libs/-lstead/-l:libstead.a} -o "$tmp/static" && ! ldd "$tmp/static" | grep libstead
}
check "the example builds against the shared library" shared
check "it links to the library by its soname" bash -c "ldd $tmp/shared | grep -q libstead.so.0"
check "it runs" runs "$tmp/shared" "$tmp/ws1"
check "the example builds against the static library" static
check "it runs too" runs "$tmp/static" "$tmp/ws2"
wholly_static() {
	# shellcheck disable=SC2046
	"${cc[@]}" -static "$source/examples/hello.c" $(config --static --cflags --libs) -o "$tmp/whole"
}
if [ ${#sanitize[@]} = 0 ]; then # a sanitizer's runtime cannot be linked so
	check "the example builds as a wholly static program" wholly_static
	check "which runs as well" runs "$tmp/whole" "$tmp/ws3"
fi
exports() { # nm's options, file
	! nm "$@" --defined-only | awk 'NF == 3 && $2 ~ /[A-Z]/ {print $3}' | grep -Ev '^(stead_|STEAD_|__(asan|ubsan|odr|tsan|llvm)|\.weak)'
}
check "the shared library exports stead_ names only" exports -D "$libdir/libstead.so"
check "the static library defines stead_ names only" exports -g "$libdir/libstead.a"
all_exported() {
	local name
	diff <(grep -oE '^STEAD_API .*' "$source/include/stead.h" | grep -oE '\bstead_[a-z_]+\(' | tr -d '(' | sort) \
		<(nm -D --defined-only "$libdir/libstead.so" | sed -nE 's/.* T ([a-z_]+)(@.*)?$/\1/p' | sort)
}
check "the functions of the header are exported, and no others" all_exported
same_version() {
	[ "$(sed -nE 's/^#define STEAD_VERSION +"(.*)"$/\1/p' "$source/include/stead.h")" = "$(config --modversion)" ]
}
check "the header and pkg-config name the same version" same_version
# The page's C blocks, one after the other, are a program; its last block shows what that prints.
block() { awk -v kind="$1" '/^```/ { on = $0 == "```" kind; next } on' "$2"; }
page() {
	block c "$source/docs/library.md" >"$tmp/page.c"
	# shellcheck disable=SC2046
	"${cc[@]}" "${sanitize[@]}" -std=c11 -pedantic -Wall -Wextra -Werror "$tmp/page.c" $(config --cflags --libs) -pthread \
		-Wl,-rpath,"$libdir" -o "$tmp/page" && (cd "$tmp" && ./page >page.out) && diff <(block text "$source/docs/library.md") "$tmp/page.out"
}
check "the examples of docs/library.md compile, run and print what the page says" page
readme() {
	block c "$source/README.md" | sed '1a #include <stdio.h>\nint main(void) {' >"$tmp/readme.c"
	echo 'return 0; }' >>"$tmp/readme.c"
	# shellcheck disable=SC2046
	"${cc[@]}" -std=c11 -pedantic -Wall -Wextra -Werror $(config --cflags) -fsyntax-only "$tmp/readme.c"
}
check "the example of the README compiles" readme
cplusplus() {
	printf '#include <stead.h>\nint main() { stead_close(nullptr); return STEAD_OK; }\n' >"$tmp/a.cc"
	# shellcheck disable=SC2046
	c++ -std=c++17 -Wall -Wextra -pedantic -Werror $(config --cflags) -fsyntax-only "$tmp/a.cc"
}
if command -v c++ >/dev/null; then
	check "the header is C++ as well" cplusplus
else
	number=$((number + 1))
	echo "ok $number - the header is C++ as well # SKIP there is no C++ compiler"
fi
check "the manual page is installed" find "$tmp/dest" -name stead.1 -exec test -s {} \;
completions() { [ "$(find "$tmp/dest" \( -path '*bash-completion*' -name stead -o -name _stead -o -name stead.fish \) -size +1k | wc -l)" = 3 ]; }
check "the completions of three shells are installed" completions
echo "1..$number"
[ $failures = 0 ]
