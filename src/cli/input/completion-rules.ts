import type { Command, Option } from 'commander';

/** What may be typed where, for the completion of a shell. A command's path is "/webhooks/create"; that of all is "". */
export type CompletionRules = {
  places: Place[];
  /** What comes behind an option that takes a value. */
  values: { path: string; flags: string[]; value: Value }[];
};

export type Place = {
  path: string;
  commands: Word[];
  options: (Word & { flags: string[]; value: Value | undefined })[];
  /** What its arguments are. */
  argument: Value | undefined;
};

type Word = { word: string; about: string };
/** Choices; any file; or something that can't be known. */
export type Value = { kind: 'choices'; choices: readonly string[] } | { kind: 'file' } | { kind: 'other' };

/** All of it comes from the program itself: what is added there is completed. */
export function completionRules(program: Command): CompletionRules {
  const places = placesOf(program, '');
  const values = places.flatMap(({ path, options }) =>
    options.flatMap(({ flags, value }) => (value ? [{ path, flags, value }] : [])),
  );
  return { places, values };
}

function placesOf(command: Command, path: string): Place[] {
  const help = command.createHelp();
  const place: Place = {
    path,
    commands: help
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
  return [place, ...command.commands.flatMap((one) => placesOf(one, `${path}/${one.name()}`))];
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
