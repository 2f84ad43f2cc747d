/**
 * The part of the metadata that searches find: values at the top level, the first `names` of a
 * submission, sizes in UTF-8.
 */
export const SEARCHABLE = { names: 32, nameBytes: 128, valueBytes: 256 };

/**
 * Returns the reason why searches cannot find this value of the metadata; undefined if they can.
 */
export function unsearchable(name: string, value: string): string | undefined {
  const shown = JSON.stringify(name.slice(0, 40));
  if (name === '' || Buffer.byteLength(name) > SEARCHABLE.nameBytes)
    return `${shown}: a name must have 1 to ${SEARCHABLE.nameBytes} bytes`;
  if (Buffer.byteLength(value) > SEARCHABLE.valueBytes)
    return `${shown}: a value must have at most ${SEARCHABLE.valueBytes} bytes`;
  return undefined;
}
