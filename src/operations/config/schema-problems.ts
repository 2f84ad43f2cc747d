import { z } from 'zod';

/** A problem of the value at `path`, such as "must be a whole number from 0 to 65535, not text". */
export type SchemaProblem = { path: string[]; text: string };

export type Checked<T> =
  | { kind: 'valid'; data: T }
  | { kind: 'invalid'; problems: SchemaProblem[] };

/** The parts of a JSON Schema from which messages are built. */
type Node = {
  type?: string;
  format?: string;
  const?: unknown;
  enum?: unknown[];
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  properties?: Record<string, Node>;
  additionalProperties?: Node | boolean;
  items?: Node;
  oneOf?: Node[];
};

/**
 * Replaces the messages of the library, which address developers. Messages set by the schema are
 * kept.
 */
const NO_MESSAGE = '';

const MAX_SHOWN_NAME = 40;

/**
 * Validates a value and describes all problems. Messages never quote text, which may be a misplaced
 * secret. They quote numbers unless `isSecret` returns true for the path.
 */
export function checkWith<T extends z.ZodType>(
  schema: T,
  input: unknown,
  isSecret: (path: string) => boolean = () => false,
): Checked<z.output<T>> {
  const parsed = schema.safeParse(input, { error: () => NO_MESSAGE });
  if (parsed.success) return { kind: 'valid', data: parsed.data };
  const root = z.toJSONSchema(schema, { io: 'input' }) as Node;
  const problems = parsed.error.issues.flatMap((issue) => {
    const path = issue.path.map(String);
    const node = nodeAt(root, path);
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({
        path: [...path, displayName(key)],
        text: unknownKeyMessage(key, path, node),
      }));
    const { message } = (issue.code === 'invalid_key' && issue.issues[0]) || issue;
    const value = valueAt(input, path);
    return [
      {
        path,
        text: message === NO_MESSAGE ? messageFor(node, value, isSecret(path.join('.'))) : message,
      },
    ];
  });
  return { kind: 'invalid', problems };
}

function unknownKeyMessage(
  key: string,
  path: readonly string[],
  { properties = {} }: Node,
): string {
  const similar = closest(key, Object.keys(properties));
  return `is not a setting${similar === undefined ? '' : `; did you mean ${[...path, similar].join('.')}?`}`;
}

/**
 * Returns a placeholder for an unusual key: a line without a space after its colon is parsed as a
 * key and may be a secret.
 */
function displayName(key: string): string {
  return /^[a-z_]+$/i.test(key) && key.length <= MAX_SHOWN_NAME ? key : '(hidden)';
}

function messageFor(node: Node, value: unknown, isSecret: boolean): string {
  const form = formOf(node);
  if (value === undefined || value === null) return `is missing: it must be ${form}`;
  const found = kindOf(value, isSecret);
  return found === undefined || found === kindOfNode(node)
    ? `must be ${form}`
    : `must be ${form}, not ${found}`;
}

function formOf(node: Node): string {
  const choices = node.oneOf?.map((variant) => variant.const) ?? node.enum;
  if (choices) return `one of ${choices.join(', ')}`;
  switch (node.type) {
    case 'integer':
    case 'number':
      return `a ${node.type === 'integer' ? 'whole ' : ''}number${rangeOf(node)}`;
    case 'boolean':
      return 'true or false';
    case 'array':
      return `a list${countOf(node.minItems, node.maxItems, 'entries')}`;
    case 'string':
      return node.format === 'email'
        ? 'an e-mail address'
        : `text${countOf(node.minLength, node.maxLength, 'characters')}`;
    default:
      return 'a section of settings by name';
  }
}

function rangeOf({ minimum, exclusiveMinimum, maximum = Number.MAX_SAFE_INTEGER }: Node): string {
  if (exclusiveMinimum !== undefined) return ` above ${exclusiveMinimum}`;
  if (minimum === undefined || minimum === Number.MIN_SAFE_INTEGER) return '';
  return maximum === Number.MAX_SAFE_INTEGER
    ? ` of at least ${minimum}`
    : ` from ${minimum} to ${maximum}`;
}

function countOf(least: number | undefined, most: number | undefined, what: string): string {
  if (least !== undefined && most !== undefined) return ` of ${least} to ${most} ${what}`;
  if (most !== undefined) return ` of at most ${most} ${what}`;
  return least === undefined ? '' : ' that is not empty';
}

/** Returns the kind of a value, or undefined if naming it would not help. */
function kindOf(value: unknown, isSecret: boolean): string | undefined {
  if (Number.isNaN(value)) return undefined;
  if (typeof value === 'number') return isSecret ? 'a number (put it in quotes)' : String(value);
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return 'text';
  return Array.isArray(value) ? 'a list' : 'a section';
}

function kindOfNode({ type, enum: choices, oneOf }: Node): string {
  if (type === 'array') return 'a list';
  return type === 'string' || choices || oneOf ? 'text' : type === 'object' ? 'a section' : '';
}

function nodeAt(root: Node, path: readonly string[]): Node {
  return path.reduce(below, root);
}

/**
 * Returns the schema of a property. For variants: the discriminating choices, or the first variant
 * that has the property.
 */
function below({ properties, additionalProperties, items, oneOf }: Node, name: string): Node {
  if (oneOf) {
    const variants = oneOf
      .map((variant) => below(variant, name))
      .filter((variant) => Object.keys(variant).length > 0);
    return variants.length > 1 && variants.every((variant) => 'const' in variant)
      ? { oneOf: variants }
      : (variants[0] ?? {});
  }
  if (properties) return properties[name] ?? {};
  if (items) return items;
  return typeof additionalProperties === 'object' ? additionalProperties : {};
}

function valueAt(tree: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (node, name) =>
      typeof node === 'object' && node !== null && Object.hasOwn(node, name)
        ? node[name as never]
        : undefined,
    tree,
  );
}

/**
 * Returns the known name most similar to `text`, or undefined if none is similar enough to be a
 * misspelling.
 */
export function closest(text: string, known: readonly string[]): string | undefined {
  // At least two edits, because two swapped characters count as two. Names below four characters
  // would match too much.
  const limit = text.length < 4 ? 1 : Math.max(2, Math.floor(text.length / 3));
  const ranked = known.map((name) => ({
    name,
    distance: distanceOf(text.toLowerCase(), name.toLowerCase()),
  }));
  const [best] = ranked.sort((a, b) => a.distance - b.distance);
  return best && best.distance <= limit ? best.name : undefined;
}

/** Returns the Levenshtein distance. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++)
      next.push(
        Math.min(
          (row[j + 1] ?? 0) + 1,
          (next[j] ?? 0) + 1,
          (row[j] ?? 0) + (char === b[j] ? 0 : 1),
        ),
      );
    row = next;
  }
  return row[b.length] ?? 0;
}
