/**
 * Returns the document with a generated part between its markers; throws if they are missing.
 * `script`: the npm script that writes it.
 */
export function withPart(document: string, script: string, part: string): string {
  const begin = `<!-- npm run ${script} writes from here -->`;
  const [from, to] = [document.indexOf(begin), document.indexOf('<!-- to here -->')];
  if (from < 0 || to < from) throw new Error('the document has no markers for the generated part');
  return `${document.slice(0, from)}${begin}\n${part}\n${document.slice(to)}`;
}
