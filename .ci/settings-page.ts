import { z } from 'zod';
import { isSecret } from '../src/config/load.ts';
import { configSchema, ENVIRONMENT } from '../src/config/schema.ts';

/** The parts of a JSON Schema that the schema of the settings uses. */
type Node = {
  type?: string;
  description?: string;
  default?: unknown;
  const?: string;
  enum?: string[];
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Node>;
  required?: string[];
  additionalProperties?: Node | boolean;
  items?: Node;
  oneOf?: Node[];
};

const HEAD = `# Settings

Made from the schema by \`npm run docs:settings\`. Environment wins over the file (\`config/dawatch.yaml\`, another one with
\`--config\` or \`DAWATCH_CONFIG\`), the file over defaults. \`npx dawatch config\` shows what is in force and where it came from. A setting
that is unknown or out of bounds keeps every command from starting, with a line that names it.

Names end in their unit: \`_s\` seconds, \`_days\` days, \`_mib\` MiB. Lists and names of your own are set in the file only, unless an
environment variable is given.

A variable that begins with \`DAWATCH_\` and is none of these is refused, too, with the nearest known name; the command line also has \`DAWATCH_CONFIG\`,
\`DAWATCH_URL\` and \`DAWATCH_TOKEN\`. Empty ones are as good as none. Passed over are those that Kubernetes sets for a Service whose name begins with
\`dawatch\`: \`DAWATCH_…SERVICE_HOST\`, \`DAWATCH_…SERVICE_PORT…\`, \`DAWATCH_…PORT_<number>_TCP…\`, and \`DAWATCH_…PORT\` if it begins with \`tcp://\`.
`;

/** docs/settings.md: every setting with its default, its bounds, its environment variable and what it means. */
export function settingsPage(): string {
  const root = z.toJSONSchema(configSchema, { io: 'input' }) as Node;
  return [HEAD, ...Object.entries(root.properties ?? {}).map(([name, node]) => section(name, node))].join('\n');
}

function section(name: string, node: Node): string {
  const about = node.properties && node.description ? `${node.description}.\n\n` : '';
  const variants = variantsOf(node);
  const tables = variants
    ? `${node.description}.\n\n${variants.map((variant) => ofVariant(name, variant)).join('\n')}`
    : table(rows(name, node, false));
  return `## ${name}\n\n${about}${tables}`;
}

/** Of things with names of their own that are of several types. */
function variantsOf({ additionalProperties }: Node): Node[] | undefined {
  return typeof additionalProperties === 'object' ? additionalProperties.oneOf : undefined;
}

function ofVariant(name: string, variant: Node): string {
  const type = variant.properties?.type?.const;
  return `### type: ${type}\n\n${table(rows(`${name}.<name>`, variant, false))}`;
}

function rows(path: string, node: Node, isRequired: boolean): string[][] {
  const { properties, additionalProperties, items, required = [] } = node;
  if (properties)
    return Object.entries(properties).flatMap(([key, child]) => rows(`${path}.${key}`, child, required.includes(key)));
  const below =
    typeof additionalProperties === 'object' && additionalProperties.properties
      ? rows(`${path}.<name>`, additionalProperties, false)
      : items?.properties
        ? rows(`${path}[]`, items, false)
        : [];
  if (below.length > 0 && node.default !== undefined && JSON.stringify(node.default) === '{}') return below;
  return [[`\`${path}\``, defaultOf(node, isRequired), valuesOf(node), aboutOf(path, node)], ...below];
}

function defaultOf(node: Node, isRequired: boolean): string {
  if (isRequired) return 'required';
  return node.default === undefined ? 'not set' : `\`${JSON.stringify(node.default)}\``;
}

function valuesOf({ type, const: only, enum: choices, minimum, maximum, items }: Node): string {
  if (only !== undefined) return `\`${only}\``;
  if (choices) return choices.map((choice) => `\`${choice}\``).join(' ');
  if (type === 'array') return items?.type === 'object' ? 'list' : 'list of text';
  if (type !== 'number' && type !== 'integer') return type === 'string' ? 'text' : (type ?? '');
  const bounds = minimum === undefined ? '' : ` ${minimum} to ${maximum === Number.MAX_SAFE_INTEGER ? '…' : maximum}`;
  return `${type === 'integer' ? 'whole number' : 'number'}${bounds}`;
}

function aboutOf(path: string, { description = '' }: Node): string {
  const concrete = path.replace('upstreams.<name>', 'upstreams.default');
  const variable = Object.entries(ENVIRONMENT).find(([, target]) => target === concrete)?.[0];
  const forDefault = variable && concrete !== path ? ` for \`${concrete.split('.')[1]}\`` : '';
  return [
    // Else it would be an element of HTML.
    description.replaceAll('<', '\\<'),
    variable && `Environment${forDefault}: \`${variable}\``,
    isSecret(concrete) && 'A secret: never shown',
  ]
    .filter((part) => part)
    .join('. ');
}

function table(lines: readonly string[][]): string {
  const cells = lines.map((line) => `| ${line.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
  return `${['| Setting | Default | Values | |', '|---|---|---|---|', ...cells].join('\n')}\n`;
}
