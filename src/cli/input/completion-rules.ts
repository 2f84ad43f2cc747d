import type { Command, Option } from 'commander';

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
export type Value = { kind: 'choices'; choices: readonly string[] } | { kind: 'file' } | { kind: 'other' };

/** Returns the words that a shell can complete, by command path, derived from its commands and options. */
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
  return [completion, ...command.commands.flatMap((one) => commandsOf(one, `${path}/${one.name()}`))];
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
