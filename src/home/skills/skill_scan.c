/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan of skills that agents wrote: a table of what honest skills seldom have, in six classes. Each rule has a word
 * that the text must have before its pattern is compiled, so an honest file costs one search per rule. Text is compared
 * in small letters.
 *
 * It is not a security boundary: somebody who wants to hide something from it can.
 */
#include "base/limits.h"
#include "base/utf8.h"
#include "home/skills/skills.h"
#include "text/grep.h"

#define FINDINGS_MAX 100

enum severity { LOW, MEDIUM, HIGH, CRITICAL };
static const char *const severities[] = {"LOW", "MEDIUM", "HIGH", "CRITICAL"};

static const struct rule {
	const char *class;
	enum severity severity;
	const char *word, *pattern, *what;
} rules[] = {
	/* clang-format off */
	{"exfiltration", HIGH, "curl", "curl .*(-d|--data[a-z-]*|-f|--form|-t|--upload-file)[ =].*(\\$|@|env|secret|token|passw)", "sends data or secrets away"},
	{"exfiltration", HIGH, "wget", "wget .*--post-(data|file)", "sends data away"},
	{"exfiltration", CRITICAL, "/etc/shadow", "/etc/shadow", "reads the system's passwords"},
	{"exfiltration", HIGH, "id_rsa", "id_rsa|id_ed25519", "reads private keys"},
	{"exfiltration", HIGH, ".ssh/", "(cat|cp|scp|tar|base64|curl|open|read).*\\.ssh/", "reads private keys"},
	{"exfiltration", HIGH, "credentials", "\\.aws/credentials|\\.git-credentials", "reads stored credentials"},
	{"exfiltration", HIGH, ".netrc", "(cat|cp|open|read|curl).*\\.netrc", "reads stored credentials"},
	{"exfiltration", HIGH, "env", "(printenv|[^a-z]env|^env) *\\| *(curl|nc|wget|base64|tee)", "sends the environment away"},
	{"exfiltration", HIGH, "os.environ", "(post|urlopen|send).*os\\.environ", "sends the environment away"},
	{"injection", CRITICAL, "ignore", "ignore (all |any |the |your )*(previous|prior|above|earlier|preceding) (instruction|rule|prompt|message|direction)", "overrides instructions"},
	{"injection", CRITICAL, "disregard", "disregard (all |any |the |your )*(previous|prior|above|earlier|system|safety)", "overrides instructions"},
	{"injection", HIGH, "system prompt", "(reveal|print|show|leak|repeat|send|output).{0,40}system prompt", "asks for the system prompt"},
	{"injection", HIGH, "tell", "(do not|don't|never) (tell|inform).{0,30}(user|person|human|owner)", "hides what is done"},
	{"injection", HIGH, "mention", "(do not|don't|never) mention.{0,30}(user|person|human|owner)", "hides what is done"},
	{"injection", MEDIUM, "you are now", "you are now (in |a |an |the )", "gives another role"},
	{"injection", MEDIUM, "</", "</(system|available_skills|instructions|skill|loaded_context)>", "closes a tag of the prompt"},
	{"destructive", CRITICAL, "rm ", "(^|[^a-z])rm +(-[a-z-]+ +)*-[a-z]*[rf][a-z]* +(-[a-z-]+ +)*(/|~|\\$home|\\$\\{home|\\*)", "removes everything"},
	{"destructive", CRITICAL, "mkfs", "(^|[^a-z])mkfs[. ]", "creates a file system"},
	{"destructive", CRITICAL, "/dev/", "(of=|> *)/dev/(sd|nvme|hd|vd|mmc)", "overwrites a disk"},
	{"destructive", CRITICAL, ":(){", ":\\(\\)\\{", "starts processes endlessly"},
	{"destructive", HIGH, "drop ", "drop +(table|database|schema)", "drops tables"},
	{"destructive", MEDIUM, "--force", "git +push.*--force", "overwrites published history"},
	{"destructive", HIGH, "chmod", "chmod +(-r +)?(777|a\\+rwx) +/", "gives everybody access to the system"},
	{"destructive", HIGH, "shutil.rmtree", "shutil\\.rmtree\\( *['\"](/|~)", "removes everything"},
	{"persistence", HIGH, "crontab", "crontab +(-|[a-z/])", "changes the system's schedule"},
	{"persistence", HIGH, "/etc/cron", "/etc/cron", "changes the system's schedule"},
	{"persistence", HIGH, "systemctl", "systemctl +(--user +)?enable", "installs a service"},
	{"persistence", HIGH, "launch", "launchctl +load|launchagents", "installs a service"},
	{"persistence", CRITICAL, "authorized_keys", "authorized_keys", "lets somebody log in"},
	{"persistence", HIGH, "rc", "(>>|tee).*(\\.bashrc|\\.zshrc|rc\\.local)", "changes a shell's startup files"},
	{"persistence", HIGH, "profile", "(>>|tee).*(\\.profile|\\.bash_profile|/etc/profile)", "changes a shell's startup files"},
	{"network", CRITICAL, "curl", "curl .*\\| *(sudo +)?(ba|z|k)?sh", "runs what it downloads"},
	{"network", CRITICAL, "wget", "wget .*\\| *(sudo +)?(ba|z|k)?sh", "runs what it downloads"},
	{"network", HIGH, "curl", "(curl|wget) .*\\| *(sudo +)?(python|perl|ruby|node)", "runs what it downloads"},
	{"network", CRITICAL, "/dev/tcp/", "/dev/tcp/", "opens a connection from a shell"},
	{"network", CRITICAL, "nc", "(^|[^a-z])(nc|ncat|netcat) .*(-e|-c) ", "gives a shell away"},
	{"network", MEDIUM, "ngrok", "ngrok", "opens a tunnel"},
	{"network", MEDIUM, "http", "https?://[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}", "connects to a bare IP address"},
	{"obfuscation", CRITICAL, "base64", "base64 +(-d|--decode).*\\| *(sudo +)?((ba|z|k)?sh|python|perl)", "runs what it decodes"},
	{"obfuscation", HIGH, "eval", "eval *\\(? *.{0,40}(base64|atob|decode|unescape|fromhex)", "runs what it decodes"},
	{"obfuscation", HIGH, "exec", "exec *\\( *.{0,40}(base64|decode|decompress|fromhex)", "runs what it decodes"},
	{"obfuscation", HIGH, "eval", "eval +[\"']?\\$\\(", "runs what another program prints"},
	{"obfuscation", MEDIUM, "fromcharcode", "string\\.fromcharcode\\(", "text encoded as numbers"},
	{"obfuscation", MEDIUM, "\\x", "(\\\\x[0-9a-f]{2}){12}", "text encoded as numbers"},
	/* clang-format on */
};

static void find(struct arena *arena, struct jv *findings, struct str path, size_t line, const struct rule *rule)
{
	struct jv *f;

	if (jv_count(findings) >= FINDINGS_MAX)
		return;
	f = jv_object(arena);
	jv_set_str(arena, f, "path", path);
	jv_set_int(arena, f, "line", (int64_t)line);
	jv_set_str(arena, f, "class", str_of(rule->class));
	jv_set_str(arena, f, "severity", str_of(severities[rule->severity]));
	jv_set_str(arena, f, "what", str_of(rule->what));
	jv_push(arena, findings, f);
}

static size_t line_number(struct str text, size_t at)
{
	size_t n = 1;

	for (size_t i = 0; i < at; i++)
		n += text.ptr[i] == '\n';
	return n;
}

/* Reports the first line that the rule matches. */
static void try_rule(struct arena *arena, struct str path, struct str text, const struct rule *rule,
		     struct jv *findings)
{
	struct err ignored; /* the patterns are our own */
	struct matcher *matcher = NULL;
	struct searcher *searcher;
	struct str line;
	size_t next;

	if (str_find(text, str_of(rule->word), 0) == SIZE_MAX ||
	    matcher_new(arena, str_of(rule->pattern), 0, &matcher, &ignored))
		return;
	searcher = searcher_new(matcher);
	searcher_begin(searcher, text);
	if (searcher_next(searcher, 0, &line, &next, &ignored) == 1)
		find(arena, findings, path, line_number(text, (size_t)(line.ptr - text.ptr)), rule);
	searcher_destroy(searcher);
	matcher_destroy(matcher);
}

/* Characters that nobody sees: zero width, directions, tags. */
static bool is_invisible(const unsigned char *p, size_t left)
{
	if (left >= 3 && p[0] == 0xE2 && p[1] == 0x80)
		return (p[2] >= 0x8B && p[2] <= 0x8F) || (p[2] >= 0xAA && p[2] <= 0xAE);
	if (left >= 3 && p[0] == 0xE2 && p[1] == 0x81)
		return p[2] >= 0xA0 && p[2] <= 0xA9;
	return left >= 3 && p[0] == 0xF3 && p[1] == 0xA0 && (p[2] == 0x80 || p[2] == 0x81);
}

void skill_scan_text(struct arena *arena, struct str path, struct str text, struct jv *findings)
{
	static const struct rule invisible = {"obfuscation", HIGH, "", "", "has invisible characters"};
	struct str small = str_lower(arena, text);

	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		try_rule(arena, path, small, &rules[i], findings);
	for (size_t i = 0; i < text.len; i++)
		/* U+200D and U+200C join letters and emoji: alone they are not suspicious */
		if (is_invisible((const unsigned char *)text.ptr + i, text.len - i) &&
		    !str_starts(str_from(text, i), STR("\xE2\x80\x8C")) &&
		    !str_starts(str_from(text, i), STR("\xE2\x80\x8D"))) {
			find(arena, findings, path, line_number(text, i), &invisible);
			break;
		}
}

enum skill_verdict skill_verdict(const struct jv *findings)
{
	size_t high = 0, medium = 0;

	for (const struct jv_member *m = jv_first(findings); m; m = m->next) {
		struct str severity = jv_get_str(m->value, "severity");

		if (str_is(severity, "CRITICAL"))
			return SKILL_DANGEROUS;
		high += str_is(severity, "HIGH");
		medium += str_is(severity, "MEDIUM");
	}
	return high > 1 ? SKILL_DANGEROUS : high || medium ? SKILL_CAUTION : SKILL_SAFE;
}

const char *skill_verdict_name(enum skill_verdict verdict)
{
	static const char *const names[] = {"SAFE", "CAUTION", "DANGEROUS"};

	return names[verdict];
}
