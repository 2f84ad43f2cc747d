import { Argument, type Command, type Option } from 'commander';

export type CompletionRules = ReturnType<typeof completionRules>;

/** The path of the program is "", that of a command such as "/webhooks/create". */
export type CommandCompletion = {
  path: string;
  subcommands: Word[];
  options: (Word & { flags: string[]; value: Value | undefined })[];
  /** The value of its arguments. */
  argument: Value | undefined;
};

type Word = { word: string; about: string };
/** A value: one of several choices, a file, or free text. */
export type Value =
  | { kind: 'choices'; choices: readonly string[] }
  | { kind: 'file' }
  | { kind: 'other' };

/**
 * Returns the words that a shell can complete, by command path, derived from its commands and
 * options.
 */
export function completionRules(program: Command) {
  const commands = commandsOf(program, '');
  /** Values of options. */
  const values = commands.flatMap(({ path, options }) =>
    options.flatMap(({ flags, value }) => (value ? [{ path, flags, value }] : [])),
  );
  return { commands, values };
}

function commandsOf(command: Command, path: string): CommandCompletion[] {
  const help = command.createHelp();
  const completion: CommandCompletion = {
    path,
    subcommands: help
      .visibleCommands(command)
      .map((one) => ({ word: one.name(), about: firstSentence(one.description()) })),
    options: help.visibleOptions(command).map((option) => ({
      word: option.long ?? option.flags,
      flags: [option.short, option.long].filter((flag) => flag != null),
      about: firstSentence(option.description),
      value: valueOfOption(option),
    })),
    argument: valueOfArgument(command),
  };
  return [
    completion,
    ...command.commands.flatMap((one) => commandsOf(one, `${path}/${one.name()}`)),
  ];
}

function valueOfOption(option: Option): Value | undefined {
  if (!option.required && !option.optional) return undefined;
  if (option.argChoices) return { kind: 'choices', choices: option.argChoices };
  return { kind: option.flags.includes('<file>') ? 'file' : 'other' };
}

function valueOfArgument({ registeredArguments: [argument] }: Command): Value | undefined {
  if (!argument) return undefined;
  if (argument.argChoices) return { kind: 'choices', choices: argument.argChoices };
  return { kind: argument.name() === 'file' ? 'file' : 'other' };
}

function firstSentence(text: string): string {
  return text.split(/[.:;]\s/)[0]?.replace(/\.$/, '') ?? '';
}

/**
 * Returns the completion script of a shell. A script determines the command path of a line and
 * offers its completions.
 */
export const COMPLETION_SCRIPTS = { bash, zsh, fish };

function bash(rules: CompletionRules): string {
  const words = (list: readonly string[]) =>
    `COMPREPLY=($(compgen -W ${quoted(list.join(' '))} -- "$word"))`;
  // Reads line by line, because an array assignment would expand a file name such as *.
  const files =
    'compopt -o filenames 2> /dev/null; while IFS= read -r i; do COMPREPLY+=("$i"); done < <(compgen -f -- "$word")';
  const offer = (value: Value | undefined) =>
    value?.kind === 'choices' ? words(value.choices) : value?.kind === 'file' ? files : ':';
  const completionsOf = (place: CommandCompletion) => {
    const ownFiles =
      place.argument?.kind === 'file' ? `[[ $word != -* ]] && { ${files}; return; }; ` : '';
    return `${ownFiles}${words([...wordsOf(place), ...choicesOf(place.argument)])}`;
  };
  return `# Completion of dawatch for bash: eval "$(dawatch completion bash)"
_dawatch() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} place='' i
  # Bash splits --option=value at the equals sign.
  if [[ $before == = ]]; then before=\${COMP_WORDS[COMP_CWORD-2]}; elif [[ $word == = ]]; then word=''; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place/\${COMP_WORDS[i]}" in
      ${pathsOf(rules).join(' | ')}) place+="/\${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  case "$place $before" in
${rules.values.map(({ path, flags, value }) => `    ${afterFlags(path, flags)}) ${offer(value)}; return ;;`).join('\n')}
  esac
  case "$place" in
${rules.commands.map((place) => `    ${quoted(place.path)}) ${completionsOf(place)} ;;`).join('\n')}
  esac
}
complete -F _dawatch dawatch
`;
}

function zsh(rules: CompletionRules): string {
  const offer = (value: Value | undefined) =>
    value?.kind === 'choices'
      ? `compadd -- ${value.choices.map(quoted).join(' ')}`
      : value?.kind === 'file'
        ? '_files'
        : ':';
  const completionsOf = (place: CommandCompletion) => {
    const described = [...place.subcommands, ...place.options].map(({ word, about }) =>
      quoted(`${word.replaceAll(':', '\\:')}:${about.replaceAll(':', '\\:')}`),
    );
    return `list=(${described.join(' ')}); _describe dawatch list; ${offer(place.argument)}`;
  };
  return `#compdef dawatch
# Completion of dawatch for zsh: eval "$(dawatch completion zsh)", after compinit
_dawatch() {
  local place='' i before="\${words[CURRENT-1]}"
  local -a list
  for ((i = 2; i < CURRENT; i++)); do
    case "$place/\${words[i]}" in
      (${pathsOf(rules).join(' | ')}) place+="/\${words[i]}" ;;
    esac
  done
  if compset -P '--*='; then before="\${IPREFIX%=}"; fi
  case "$place $before" in
${rules.values.map(({ path, flags, value }) => `    (${afterFlags(path, flags)}) ${offer(value)}; return ;;`).join('\n')}
  esac
  case "$place" in
${rules.commands.map((place) => `    (${quoted(place.path)}) ${completionsOf(place)} ;;`).join('\n')}
  esac
}
compdef _dawatch dawatch
`;
}

function fish(rules: CompletionRules): string {
  const offer = (value: Value | undefined) =>
    value?.kind === 'choices'
      ? ` -x -a ${quoted(value.choices.join(' '))}`
      : value?.kind === 'file'
        ? ' -r -F'
        : ' -x';
  const lines = rules.commands.flatMap(({ path, subcommands, options, argument }) => {
    const at = `complete -c dawatch -n ${quoted(`__dawatch_is_at '${path}'`)}`;
    return [
      ...subcommands.map(({ word, about }) => `${at} -a ${quoted(word)} -d ${quoted(about)}`),
      ...options.map(({ flags, about, value }) => {
        const names = flags.map((flag) =>
          flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
        );
        return `${at} ${names.join(' ')} -d ${quoted(about)}${value ? offer(value) : ''}`;
      }),
      ...(argument?.kind === 'choices' ? [`${at} -a ${quoted(argument.choices.join(' '))}`] : []),
      ...(argument?.kind === 'file' ? [`${at} -F`] : []),
    ];
  });
  return `# Completion of dawatch for fish: dawatch completion fish | source
function __dawatch_is_at
    set -l place ''
    for word in (commandline -opc)[2..-1]
        if contains -- "$place/$word" ${pathsOf(rules).join(' ')}
            set place "$place/$word"
        end
    end
    test "$place" = "$argv[1]"
end
complete -c dawatch -f
${lines.join('\n')}
`;
}

function pathsOf({ commands }: CompletionRules): string[] {
  return commands.map(({ path }) => path).filter((path) => path !== '');
}

function wordsOf({ subcommands, options }: CommandCompletion): string[] {
  return [...subcommands, ...options].map(({ word }) => word);
}

function choicesOf(value: Value | undefined): readonly string[] {
  return value?.kind === 'choices' ? value.choices : [];
}

function afterFlags(path: string, flags: readonly string[]): string {
  return flags.map((flag) => quoted(`${path} ${flag}`)).join(' | ');
}

/** Quotes a text for all three shells without a backslash, whose meaning differs between them. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'"'"'`)}'`;
}

type Shell = keyof typeof COMPLETION_SCRIPTS;

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('Print a shell script that completes commands, options and their values.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(COMPLETION_SCRIPTS)))
    .addHelpText(
      'after',
      `
Examples:
  bash  eval "$(dawatch completion bash)"      in ~/.bashrc
  zsh   eval "$(dawatch completion zsh)"       in ~/.zshrc, after compinit
  fish  dawatch completion fish | source       in ~/.config/fish/config.fish

The script completes the command dawatch. In a checkout, define it with alias dawatch='npx dawatch'.`,
    )
    .action((shell: Shell) => {
      process.stdout.write(COMPLETION_SCRIPTS[shell](completionRules(program)));
    });
}
