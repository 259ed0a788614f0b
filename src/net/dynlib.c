/* SPDX-License-Identifier: Apache-2.0 */
#include "net/dynlib.h"

#include <dlfcn.h>
#include <string.h>

int dynlib_load(const char *soname, const char *package, const struct dynlib_entry *entries, size_t count,
		struct err *err)
{
	void *lib = dlopen(soname, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return err_set(err, ERR_UNSUPPORTED, "%s cannot be loaded; install the package %s", soname, package);
	for (size_t i = 0; i < count; i++) {
		void *found = dlsym(lib, entries[i].name);

		if (!found)
			return err_set(err, ERR_UNSUPPORTED, "%s has no %s; install a newer %s", soname,
				       entries[i].name, package);
		memcpy(entries[i].slot, &found, sizeof(found)); /* a function pointer, which C will not cast to */
	}
	return 0;
}
