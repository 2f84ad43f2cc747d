import { z } from 'zod';
import { ENVIRONMENT } from '../../src/operations/config/load.ts';
import { isSecret } from '../../src/operations/config/settings-file.ts';
import { configSchema } from '../../src/wiring/settings.ts';

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

Most teams set these, and keep the other defaults:

- \`upstreams.default.url\`, \`api_key\` and \`budget\`: the upstream, your key, and the most requests it may receive
- \`server.host\` and \`auth.service_key\`: where clients connect, and the first key that they may send
- \`database\`: where the ledger is
- \`webhooks.allow\`: private addresses to which webhooks may be sent
- \`channels\` and \`routes\`: who is told about alerts and failures
- \`retention.submissions_days\`: when final submissions are deleted; by default never

The file is \`config/dawatch.yaml\` in the folder of the server, or the one that \`--config\` or \`DAWATCH_CONFIG\` names.
Variables override the file. \`npx dawatch config\` shows the settings in effect and their sources.

- **Errors.** With an unknown setting or variable, or a value out of bounds, no command starts. The error names it.
- **Units** end the names: \`_s\` seconds, \`_days\` days.
- **Variables.** Lists and names that you choose are set in the file, unless a variable is listed. An empty variable
  counts as not set. Those that Kubernetes sets for a Service are ignored.
- **Secrets** are never shown. Instead of \`service_key\` set \`service_key_file\`, or \`DAWATCH_SERVICE_KEY_FILE\`; both at
  once are an error. The file contains one line. Each process reads only the files that it uses.
- **Changes** apply after a restart of about a second, which loses no acknowledged data. Restart the workers first.
- **Literal values.** Quotes around a value (\`docker --env-file\` keeps them) and white space at its ends are errors.
  So are placeholders such as \`\${X}\`, \`$X\`, \`%X%\` and \`!env X\`, and paths such as \`~/x\` and \`file:x\`.

Each entry names the setting, in parentheses its default and its variable (of the upstream \`default\`), and its meaning.

<!-- generated -->
`;

/**
 * Returns docs/settings.md: every setting with its default, bounds, environment variable and
 * meaning.
 */
export function settingsPage(): string {
  const root = z.toJSONSchema(configSchema, { io: 'input' }) as Node;
  return [
    HEAD,
    ...Object.entries(root.properties ?? {}).map(([name, node]) => section(name, node)),
  ].join('\n');
}

function section(name: string, node: Node): string {
  const about = node.properties && node.description ? `${node.description}.\n\n` : '';
  const variants = variantsOf(node);
  const list = variants
    ? `${node.description}.\n\n${variants.map((variant) => ofVariant(name, variant)).join('\n')}`
    : listOf(rows(name, node, false));
  return `## ${name}\n\n${about}${list}`;
}

/**
 * The variants of entries with user-chosen names and several types; undefined for other settings.
 */
function variantsOf({ additionalProperties }: Node): Node[] | undefined {
  return typeof additionalProperties === 'object' ? additionalProperties.oneOf : undefined;
}

function ofVariant(name: string, variant: Node): string {
  const type = variant.properties?.type?.const;
  return `### type: ${type}\n\n${listOf(rows(`${name}.<name>`, variant, false))}`;
}

function rows(path: string, node: Node, isRequired: boolean): string[] {
  const { properties, additionalProperties, items, required = [] } = node;
  // The heading names the type.
  if (node.const !== undefined) return [];
  if (properties)
    return Object.entries(properties).flatMap(([key, child]) =>
      rows(`${path}.${key}`, child, required.includes(key)),
    );
  const below =
    typeof additionalProperties === 'object' && additionalProperties.properties
      ? rows(`${path}.<name>`, additionalProperties, false)
      : items?.properties
        ? rows(`${path}[]`, items, false)
        : [];
  if (below.length > 0 && node.default !== undefined && JSON.stringify(node.default) === '{}')
    return below;
  return [entryOf(path, node, isRequired), ...below];
}

/** Returns the name of a setting, its default and variable in parentheses, and its meaning. */
function entryOf(path: string, node: Node, isRequired: boolean): string {
  const { description = '' } = node;
  const concrete = path.replace('upstreams.<name>', 'upstreams.default');
  const variable = Object.entries(ENVIRONMENT).find(([, target]) => target === concrete)?.[0];
  const facts = [
    isRequired && 'required',
    node.default !== undefined && `\`${JSON.stringify(node.default)}\``,
    variable && `\`${variable}\``,
    isSecret(concrete) && 'secret',
  ].filter((fact) => fact);
  // Markdown would interpret < as the start of an HTML element.
  const about = [description.replaceAll('<', '\\<'), valuesOf(node)].filter((part) => part);
  return `- \`${path}\`${facts.length > 0 ? ` (${facts.join(', ')})` : ''}: ${about.join('. ')}`;
}

/** Returns the choices or the bounds of a value; empty if there are none. */
function valuesOf({ type, enum: choices, minimum, maximum }: Node): string {
  if (choices) return choices.map((choice) => `\`${choice}\``).join(' ');
  if (minimum === undefined) return '';
  const most = maximum === Number.MAX_SAFE_INTEGER ? '…' : maximum;
  return `${minimum} to ${most}${type === 'integer' ? ', whole' : ''}`;
}

const listOf = (entries: readonly string[]): string => `${entries.join('\n')}\n`;
