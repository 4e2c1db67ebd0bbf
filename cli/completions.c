// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Prints the completion script of a shell when allocprof is built: completions bash|zsh|fish
 * TEMPLATE. A line @NAME@ of the template, which is in data/completions, is replaced by text that
 * is made from the tables of options that --help prints.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "array.h"
#include "cleanup.h"
#include "command.h"
#include "export.h"
#include "export_events.h"
#include "options.h"
#include "profile.h"
#include "top_view.h"
#include "selection.h"
#include "definitions.h"

#define MAX_WORDS 512

/* Kinds of option values and operands. */
enum kind {
	KIND_NONE, /* takes no value */
	KIND_ANY,  /* takes a value whose possible values cannot be listed */
	KIND_FILE,
	KIND_DIRECTORY,
	KIND_PID,
	KIND_COMMAND, /* the name of a program */
	KIND_WORDS,   /* one of several words */
	KIND_LIST,    /* several words, separated by commas */
};

struct value {
	enum kind kind;
	char words[MAX_WORDS]; /* separated by blanks */
};

static void add_word(struct value *value, const char *word)
{
	size_t len = strlen(value->words);

	snprintf(value->words + len, sizeof(value->words) - len, "%s%s", len ? " " : "", word);
}

/* Options of these names have the same values in every command, but for the one whose argument is a place. */
static bool set_words(struct value *value, const char *name, const char *argument)
{
	bool is_sort = !strcmp(name, "sort");

	value->kind = KIND_WORDS;
	if (!strcmp(argument, "PLACE")) {
		add_word(value, "shell systemd docker kubernetes");
		return true;
	}
	if (!strcmp(argument, "COLUMN") || !strcmp(name, "columns")) {
		value->kind = strcmp(name, "columns") ? KIND_WORDS : KIND_LIST;
		for (int i = 0; i < TOP_COLUMNS; i++)
			add_word(value, top_column__name(i));
		return true;
	}
	if (!strcmp(argument, "KIND")) {
		for (int i = 0; i < TOP_BYS; i++)
			add_word(value, top_by__name(i));
		return true;
	}
	if (is_sort || !strcmp(name, "cost")) {
		for (int i = 0; i < COSTS; i++)
			add_word(value, cost__name(i));
		if (is_sort)
			add_word(value, "oldest");
		return true;
	}
	if (!strcmp(name, "event") || !strcmp(name, "function")) {
		value->kind = KIND_LIST;
		for (int i = 0; i < AP_FUNCTIONS; i++)
			add_word(value, profile__function_name(i));
		return true;
	}
	if (!strcmp(name, "allocator")) {
		value->kind = KIND_LIST;
		for (const char *const *shipped = definitions__shipped(); *shipped; shipped++)
			add_word(value, *shipped);
		add_word(value, DEFINITIONS_MAPPINGS);
		add_word(value, DEFINITIONS_FAULTS);
		return true;
	}
	if (!strcmp(name, "format")) {
		for (int i = 0; i < EXPORT_FORMATS; i++)
			add_word(value, export__format_name(i));
		return true;
	}
	if (!strcmp(name, "layout") || !strcmp(name, "colour") || !strcmp(name, "color")) {
		add_word(value, !strcmp(name, "layout") ? "icicle flame" : "kind module");
		return true;
	}
	if (!strcmp(name, "backtrace") && !strcmp(argument, "none")) {
		add_word(value, "none");
		return true;
	}
	if (!strcmp(name, "backtrace")) {
		for (int i = 0; i < BACKTRACES; i++)
			add_word(value, backtrace__name(i));
		return true;
	}
	if (!strcmp(name, "engine")) {
		add_word(value, "auto uprobe preload inside");
		return true;
	}
	if (!strcmp(name, "demangle")) {
		add_word(value, "simple full none");
		return true;
	}
	if (!strcmp(name, "by")) {
		value->kind = KIND_LIST;
		add_word(value, "process pid arguments cgroup thread type");
		return true;
	}
	return false;
}

static struct value value_of(const struct argp_option *option)
{
	static const struct {
		const char *argument;
		enum kind kind;
	} kinds[] = {
		{ "FILE", KIND_FILE },	      { "DIR", KIND_DIRECTORY },   { "PID", KIND_PID },
		{ "PID[,PID...]", KIND_PID }, { "COMMAND", KIND_COMMAND },
	};
	struct value value = { .kind = option->arg ? KIND_ANY : KIND_NONE };
	struct value words = { 0 };

	if (option->arg && option->name && set_words(&words, option->name, option->arg))
		return words;
	for (size_t i = 0; option->arg && i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(option->arg, kinds[i].argument))
			value.kind = kinds[i].kind;
	return value;
}

/* Returns the kind of the first operand, which the usage line shows. */
static struct value operand_of(const struct command *command)
{
	const char *usage = command->args_doc ? command->args_doc : "";
	struct value value = { .kind = KIND_NONE };

	if (command->launches || strstr(usage, "PROGRAM")) {
		value.kind = KIND_COMMAND;
	} else if (strstr(usage, "FILE") || strstr(usage, "BEFORE")) {
		value.kind = KIND_FILE;
	} else if (islower((unsigned char)*usage) && strchr(usage, '|')) {
		value.kind = KIND_WORDS;
		add_word(&value, usage);
		for (char *at = value.words; *at; at++)
			if (*at == '|')
				*at = ' ';
	}
	return value;
}

static bool has_letter(const struct argp_option *option)
{
	return option->key > ' ' && option->key < 0x7f && isgraph(option->key);
}

struct printer {
	const struct command *command;
	/* Prints an option. @meaning is the option that @option is an alias of, or @option itself. */
	void (*option)(const struct printer *printer, const struct argp_option *option,
		       const struct argp_option *meaning);
};

static bool print_option(const struct argp_option *option, const struct argp_option *meaning,
			 void *context)
{
	const struct printer *printer = context;

	if (option->name && !((option->flags | meaning->flags) & OPTION_HIDDEN))
		printer->option(printer, option, meaning);
	return false;
}

static void for_each_option(const struct printer *printer)
{
	options__visit(printer->command, print_option, (void *)printer);
}

static void for_each_command(void (*option)(const struct printer *printer,
					    const struct argp_option *option,
					    const struct argp_option *meaning),
			     void (*begin)(const struct command *command),
			     void (*end)(const struct command *command))
{
	for (size_t i = 0; commands[i]; i++) {
		const struct printer printer = { commands[i], option };

		if (begin)
			begin(commands[i]);
		for_each_option(&printer);
		if (end)
			end(commands[i]);
	}
}

/* The script for bash: functions that list the words, and one that finds the position in the
 * command line. */

static void print_bash_value(const struct value *value)
{
	static const char *const names[] = {
		[KIND_NONE] = "",	 [KIND_ANY] = "any",
		[KIND_FILE] = "file",	 [KIND_DIRECTORY] = "directory",
		[KIND_PID] = "pid",	 [KIND_COMMAND] = "command",
		[KIND_WORDS] = "words:", [KIND_LIST] = "list:",
	};

	printf("%s%s", names[value->kind], value->words);
}

static void print_bash_word(const struct printer *printer, const struct argp_option *option,
			    const struct argp_option *meaning)
{
	printf(" --%s%s", option->name, meaning->arg ? "=" : "");
	if (has_letter(option))
		printf(" -%c", option->key);
}

static void begin_bash_words(const struct command *command)
{
	printf("\t%s) REPLY='", command->name);
}

static void end_bash_words(const struct command *command)
{
	puts("' ;;");
}

static void print_bash_kind(const struct printer *printer, const struct argp_option *option,
			    const struct argp_option *meaning)
{
	struct value value = value_of(meaning);

	if (value.kind == KIND_NONE)
		return;
	printf("\t%s:--%s", printer->command->name, option->name);
	if (has_letter(option))
		printf(" | %s:-%c", printer->command->name, option->key);
	printf(") REPLY='");
	print_bash_value(&value);
	puts("' ;;");
}

static void print_bash_operand(const struct command *command)
{
	struct value value = operand_of(command);

	printf("\t%s:) REPLY='", command->name);
	print_bash_value(&value);
	printf("' ;;\n");
}

static void print_bash_commands(void)
{
	fputs("_allocprof_commands='", stdout);
	for (size_t i = 0; commands[i]; i++)
		printf("%s%s", i ? " " : "", commands[i]->name);
	puts("'");
}

static void print_bash_options(void)
{
	for_each_command(print_bash_word, begin_bash_words, end_bash_words);
}

static void print_bash_values(void)
{
	for_each_command(print_bash_kind, print_bash_operand, NULL);
}

/* Prints @text in single quotes, with a backslash before each character of @special. */
static void print_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr(special, *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

/* The script for zsh: specifications for _arguments. */

#define ZSH_SPECIAL "[]:\\"

static void print_zsh_action(const struct value *value)
{
	switch (value->kind) {
	case KIND_FILE:
		printf("_files");
		break;
	case KIND_DIRECTORY:
		printf("_files -/");
		break;
	case KIND_PID:
		printf("_allocprof_pids");
		break;
	case KIND_COMMAND:
		printf(" _command_names -e");
		break;
	case KIND_WORDS:
		printf("(%s)", value->words);
		break;
	case KIND_LIST:
		printf("_values -s , word %s", value->words);
		break;
	case KIND_NONE:
	case KIND_ANY:
		putchar(' ');
		break;
	}
}

static void print_zsh_option(const struct printer *printer, const struct argp_option *option,
			     const struct argp_option *meaning)
{
	struct value value = value_of(meaning);
	const char *letters[] = { option->name, NULL };

	for (size_t i = 0; i < 2; i++) {
		if (i && !has_letter(option))
			break;
		if (letters[i])
			printf(" \\\n\t\t'*--%s%s[", letters[i], meaning->arg ? "=" : "");
		else
			printf(" \\\n\t\t'*-%c%s[", option->key, meaning->arg ? "+" : "");
		print_quoted(meaning->doc ? meaning->doc : "", ZSH_SPECIAL);
		putchar(']');
		if (meaning->arg) {
			putchar(':');
			print_quoted(meaning->arg, ZSH_SPECIAL);
			putchar(':');
			print_zsh_action(&value);
		}
		putchar('\'');
	}
}

static void begin_zsh_command(const struct command *command)
{
	printf("\t%s)\n\t\t_arguments -s -S", command->name);
}

static void end_zsh_command(const struct command *command)
{
	struct value value = operand_of(command);

	if (command->launches) {
		printf(" \\\n\t\t'(-)1:command: _command_names -e' '*::argument:_normal'");
	} else if (value.kind == KIND_COMMAND) {
		printf(" \\\n\t\t'1:program or library:_allocprof_programs'");
	} else if (value.kind != KIND_NONE) {
		bool is_one = value.kind == KIND_WORDS;

		printf(" \\\n\t\t'%s:argument:", is_one ? "1" : "*");
		print_zsh_action(&value);
		putchar('\'');
	}
	puts(" ;;");
}

static void print_zsh_commands(void)
{
	for (size_t i = 0; commands[i]; i++) {
		printf("\t\t'%s:", commands[i]->name);
		print_quoted(commands[i]->summary, "");
		puts("'");
	}
}

static void print_zsh_options(void)
{
	for_each_command(print_zsh_option, begin_zsh_command, end_zsh_command);
}

/* The script for fish: a line for each option. */

#define FISH_SPECIAL "\\"

static void print_fish_words(const char *words, bool is_list)
{
	if (is_list)
		printf(" -x -a '(__fish_append , %s)'", words);
	else
		printf(" -x -a '%s'", words);
}

static void print_fish_value(const struct value *value)
{
	switch (value->kind) {
	case KIND_NONE:
		break;
	case KIND_ANY:
		printf(" -x");
		break;
	case KIND_FILE:
		printf(" -r -F");
		break;
	case KIND_DIRECTORY:
		printf(" -x -a '(__fish_complete_directories)'");
		break;
	case KIND_PID:
		printf(" -x -a '(__fish_complete_pids)'");
		break;
	case KIND_COMMAND:
		printf(" -x -a '(__allocprof_complete_command)'");
		break;
	case KIND_WORDS:
	case KIND_LIST:
		print_fish_words(value->words, value->kind == KIND_LIST);
		break;
	}
}

static void print_fish_option(const struct printer *printer, const struct argp_option *option,
			      const struct argp_option *meaning)
{
	struct value value = value_of(meaning);

	printf("complete -c allocprof -n '__allocprof_in %s' -l %s", printer->command->name,
	       option->name);
	if (has_letter(option))
		printf(" -s %c", option->key);
	print_fish_value(&value);
	printf(" -d '");
	print_quoted(meaning->doc ? meaning->doc : "", FISH_SPECIAL);
	puts("'");
}

static void print_fish_parameter(const struct printer *printer, const struct argp_option *option,
				 const struct argp_option *meaning)
{
	if (!meaning->arg)
		return;
	printf(" --%s", option->name);
	if (has_letter(option))
		printf(" -%c", option->key);
}

static void print_fish_operand(const struct command *command)
{
	const struct printer parameters = { command, print_fish_parameter };
	struct value value = operand_of(command);

	if (value.kind == KIND_NONE)
		return;
	printf("complete -c allocprof -n '__allocprof_in %s'", command->name);
	if (command->launches) {
		printf(" -x -a '(__allocprof_complete_command");
		for_each_option(&parameters);
		puts(")'");
		return;
	}
	if (value.kind == KIND_COMMAND)
		printf(" -F -a '(__allocprof_complete_command)'");
	else
		print_fish_value(&value);
	putchar('\n');
}

static void print_fish_commands(void)
{
	for (size_t i = 0; commands[i]; i++) {
		printf("complete -c allocprof -n __allocprof_wants_command -a %s -d '",
		       commands[i]->name);
		print_quoted(commands[i]->summary, FISH_SPECIAL);
		puts("'");
	}
}

static void print_fish_options(void)
{
	for_each_command(print_fish_option, print_fish_operand, NULL);
}

static const struct part {
	const char *shell, *line;
	void (*print)(void);
} parts[] = {
	{ "bash", "@commands@\n", print_bash_commands },
	{ "bash", "@options@\n", print_bash_options },
	{ "bash", "@values@\n", print_bash_values },
	{ "zsh", "@commands@\n", print_zsh_commands },
	{ "zsh", "@options@\n", print_zsh_options },
	{ "fish", "@commands@\n", print_fish_commands },
	{ "fish", "@options@\n", print_fish_options },
};

static void print_line(const char *shell, const char *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!strcmp(parts[i].shell, shell) && !strcmp(parts[i].line, line)) {
			parts[i].print();
			return;
		}
	fputs(line, stdout);
}

int main(int argc, char **argv)
{
	_cleanup_(close_file) FILE *template = argc == 3 ? fopen(argv[2], "r") : NULL;
	_cleanup_(free_ptr) char *line = NULL;
	size_t room = 0;

	if (!template) {
		fputs("completions: name a shell (bash, zsh or fish) and its template\n", stderr);
		return EXIT_USAGE;
	}
	while (getline(&line, &room, template) > 0)
		print_line(argv[1], line);
	return ferror(template) || fflush(stdout) ? EXIT_FAILED : EXIT_GOOD;
}
