import { z } from 'zod';
import { closest } from './closest.ts';

/** What is wrong with one value: "must be a whole number from 0 to 65535, not text" about the value at `path`. */
export type SchemaProblem = { path: string[]; text: string };

export type Checked<T> = { kind: 'valid'; data: T } | { kind: 'invalid'; problems: SchemaProblem[] };

/** The parts of a JSON Schema that are put into words. */
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

/** Stands for the library's own words, which are for developers. A schema's own messages stay: they begin with "must". */
const NO_WORDS = '';

const MAX_SHOWN_NAME = 40;

/**
 * Checks a value and words what is wrong with it. Text that was given is never shown, since it may be a secret in the wrong
 * place; numbers are, unless `isSecret` says otherwise.
 */
export function checkWith<T extends z.ZodType>(
  schema: T,
  input: unknown,
  isSecret: (path: string) => boolean = () => false,
): Checked<z.output<T>> {
  const parsed = schema.safeParse(input, { error: () => NO_WORDS });
  if (parsed.success) return { kind: 'valid', data: parsed.data };
  const root = z.toJSONSchema(schema, { io: 'input' }) as Node;
  const problems = parsed.error.issues.flatMap((issue) => {
    const path = issue.path.map(String);
    const node = nodeAt(root, path);
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({ path: [...path, shownName(key)], text: unknownText(key, path, node) }));
    const { message } = (issue.code === 'invalid_key' && issue.issues[0]) || issue;
    const value = valueAt(input, path);
    return [{ path, text: message === NO_WORDS ? wording(node, value, isSecret(path.join('.'))) : message }];
  });
  return { kind: 'invalid', problems };
}

function unknownText(key: string, path: readonly string[], { properties = {} }: Node): string {
  const meant = closest(key, Object.keys(properties));
  return `is no setting${meant === undefined ? '' : `; did you mean ${[...path, meant].join('.')}?`}`;
}

/** A key that was written without a space after its colon is a name, too, and may be a secret. */
function shownName(key: string): string {
  return /^[a-z_]+$/i.test(key) && key.length <= MAX_SHOWN_NAME ? key : '(a name)';
}

function wording(node: Node, value: unknown, isSecret: boolean): string {
  const form = formOf(node);
  if (value === undefined || value === null) return `is missing: it must be ${form}`;
  const found = kindOf(value, isSecret);
  return found === undefined || found === kindOfNode(node) ? `must be ${form}` : `must be ${form}, not ${found}`;
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
  return maximum === Number.MAX_SAFE_INTEGER ? ` of at least ${minimum}` : ` from ${minimum} to ${maximum}`;
}

function countOf(least: number | undefined, most: number | undefined, what: string): string {
  if (least !== undefined && most !== undefined) return ` of ${least} to ${most} ${what}`;
  if (most !== undefined) return ` of at most ${most} ${what}`;
  return least === undefined ? '' : ' that is not empty';
}

/** Undefined: nothing that helps. */
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

/** Of variants, what they have in common, and the choice that tells them apart. */
function below({ properties, additionalProperties, items, oneOf }: Node, name: string): Node {
  if (oneOf) {
    const variants = oneOf.map((variant) => below(variant, name)).filter((variant) => Object.keys(variant).length > 0);
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
      typeof node === 'object' && node !== null && Object.hasOwn(node, name) ? node[name as never] : undefined,
    tree,
  );
}
