const SENDER =
  /^(?:"?([^<>"\r\n]*?)"?\s*<([^\s@<>",;]+@[^\s@<>",;]+)>|([^\s@<>",;]+@[^\s@<>",;]+))$/;

/** Whether a text is an e-mail address, or a name followed by one in angle brackets. */
export function isSender(text: string): boolean {
  return SENDER.test(text);
}

/** Returns name and address separately, because a comma in a name would begin another address. */
export function senderOf(text: string): { name: string; address: string } {
  const [, name = '', inBrackets, bare = ''] = SENDER.exec(text) ?? [];
  return { name, address: inBrackets ?? bare };
}
