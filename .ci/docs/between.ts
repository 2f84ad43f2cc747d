/** Returns the document with a generated part between its markers; throws if they are missing. */
export function withPart(document: string, name: string, part: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the document has no ${begin} … ${end}`);
  return `${document.slice(0, from)}${begin}\n${part}\n${document.slice(to)}`;
}
