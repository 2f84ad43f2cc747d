import { z } from 'zod';
import { isReloadable } from '../../src/operations/config/reload.ts';
import { configSchema, ENVIRONMENT } from '../../src/operations/config/schema.ts';
import { isSecret } from '../../src/operations/config/settings-file.ts';

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

Most teams set these, and keep the defaults of all others:

- \`upstreams.default.url\` and \`api_key\` (\`DAWATCH_UPSTREAM_URL\`, \`DAWATCH_UPSTREAM_API_KEY\`): the upstream
- \`upstreams.default.budget\`: the most requests that the upstream may receive
- \`server.host\` and \`auth.api_key\` (\`DAWATCH_HOST\`, \`DAWATCH_API_KEY\`): where clients connect, and their first key
- \`database\` (\`DAWATCH_DATABASE\`): where the ledger is
- \`webhooks.allow\` (\`DAWATCH_WEBHOOK_ALLOW\`): the private addresses to which webhooks may be sent
- \`channels\` and \`routes\`: who is told about alerts and failures, such as a Slack channel
- \`retention.submissions_days\`: when final submissions are deleted; by default all are kept

\`npm run docs:settings\` generates this page from the schema. The environment overrides the file (\`config/dawatch.yaml\`, or another one named with
\`--config\` or \`DAWATCH_CONFIG\`), and the file overrides the defaults. \`npx dawatch config\` shows the settings in effect and the source of each. With
an unknown setting or a value out of bounds no command starts; the error names the setting.

Each secret can be read from a file, such as a mounted secret of Docker or Kubernetes: \`api_key_file\` instead of \`api_key\`, or the variable
\`DAWATCH_API_KEY_FILE\` instead of \`DAWATCH_API_KEY\`. The file contains one line; a pipe is read once, and a device is refused. Setting both is an error. A process reads only the files of secrets that it
uses, and needs no access to the others: the server, \`dawatch config\` and \`dawatch doctor\` all files, a worker \`api_key_file\` and the headers of the upstreams and the files of
\`redis\`, commands that connect to the server at most \`auth.api_key_file\`, and commands that work on the ledger none.

A running server applies changes of the settings marked "Reloads" after \`POST /v1/reload\` or SIGHUP, a worker those of \`api_key\`, \`headers\` and
\`log.level\` after SIGHUP ([reload.md](reload.md)). Variables of a running process cannot change, but the files that they name can.

Names end in their unit: \`_s\` seconds, \`_days\` days, \`_mib\` MiB. Lists, and settings below a name that you choose, can only be set in the file, unless an
environment variable is listed.

Quotes around a value, white space at its ends, and paths such as \`~/x\`, \`$HOME/x\` and \`file:x\` are errors, which show the value that was meant. \`docker --env-file\` and
\`kubectl create secret --from-env-file\` keep quotes, and only a shell replaces \`~\` and variables: the ledger would be in a new folder of that name.

An unknown variable that begins with \`DAWATCH_\` is an error, which shows the most similar known name. The command line also uses \`DAWATCH_CONFIG\`,
\`DAWATCH_URL\` and \`DAWATCH_TOKEN\`. An empty variable counts as not set. Variables that Kubernetes sets for a Service whose name begins with
\`dawatch\` are ignored: \`DAWATCH_…SERVICE_HOST\`, \`DAWATCH_…SERVICE_PORT…\`, \`DAWATCH_…PORT_<number>_TCP…\`, and \`DAWATCH_…PORT\` if it begins with \`tcp://\`.

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
  const tables = variants
    ? `${node.description}.\n\n${variants.map((variant) => ofVariant(name, variant)).join('\n')}`
    : table(rows(name, node, false));
  return `## ${name}\n\n${about}${tables}`;
}

/**
 * The variants of entries with user-chosen names and several types; undefined for other settings.
 */
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
  return [
    [`\`${path}\``, defaultOf(node, isRequired), valuesOf(node), aboutOf(path, node)],
    ...below,
  ];
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
  const bounds =
    minimum === undefined
      ? ''
      : ` ${minimum} to ${maximum === Number.MAX_SAFE_INTEGER ? '…' : maximum}`;
  return `${type === 'integer' ? 'whole number' : 'number'}${bounds}`;
}

function aboutOf(path: string, { description = '' }: Node): string {
  const concrete = path.replace('upstreams.<name>', 'upstreams.default');
  const variable = Object.entries(ENVIRONMENT).find(([, target]) => target === concrete)?.[0];
  const forDefault = variable && concrete !== path ? ` for \`${concrete.split('.')[1]}\`` : '';
  return [
    // Markdown would interpret < as the start of an HTML element.
    description.replaceAll('<', '\\<'),
    isReloadable(concrete) && 'Reloads',
    variable && `Environment${forDefault}: \`${variable}\``,
    isSecret(concrete) &&
      `Secret: never shown; \`${path.split('.').at(-1)}_file\` names a file with it${variable ? `, as does \`${variable}_FILE\`` : ''}`,
  ]
    .filter((part) => part)
    .join('. ');
}

function table(lines: readonly string[][]): string {
  const cells = lines.map(
    (line) => `| ${line.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`,
  );
  return `${['| Setting | Default | Values | Meaning |', '|---|---|---|---|', ...cells].join('\n')}\n`;
}
