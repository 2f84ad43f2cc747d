// Reads an OpenAPI document from standard input. Writes one exported type for each of its schemas
// and for the query of each operation. It is in this folder because openapi-typescript needs the
// API of TypeScript 5.
import { text } from 'node:stream/consumers';
import openapiTS from 'openapi-typescript';
import ts from 'typescript';

const document = JSON.parse(await text(process.stdin), (key, value) =>
  isOmitted(key, value) ? undefined : value,
);
const nodes = await openapiTS(document, { defaultNonNullable: false });
const schemas = membersOf(membersOf(nodes, 'components'), 'schemas');
const queries = membersOf(nodes, 'operations').flatMap(({ name, type }) => {
  const query = membersOf(type.members, 'parameters').find((node) => node.name.text === 'query');
  const title = `${name.text[0].toUpperCase()}${name.text.slice(1)}Query`;
  return query.type.members ? [declarationOf(title, query)] : [];
});
const written = [
  '// Written by `npm run docs:client` from /openapi.json.',
  ...schemas.map((schema) => declarationOf(schema.name.text, schema)),
  // A query leaves out what is undefined.
  ...queries.map((query) => query.replaceAll(/(\?: .+);$/gm, '$1 | undefined;')),
].join('\n\n');
process.stdout.write(
  written
    .replaceAll(/components\["schemas"\]\["(\w+)"\]/g, '$1')
    .replaceAll(/ *\/\*\* @(?:enum|constant).*\*\/\n| *\* @(?:enum|constant).*\n/g, '')
    .replaceAll('@description ', ''),
);

/** Whether a keyword adds nothing to a type, or only lines of comments. */
function isOmitted(key, value) {
  if (key === 'allOf') return value.every((schema) => Object.keys(schema).join() === 'pattern');
  if (key === 'default') return value === '' || typeof value === 'object';
  return ['example', 'examples', 'format'].includes(key);
}

/** Returns the members of the type of the member with this name; none if it has no members. */
function membersOf(members, name) {
  const member = members.find((node) => node.name?.text === name);
  return member?.members ?? member?.type.members ?? [];
}

/** Returns the text of an exported type, with the comment of the node. */
function declarationOf(name, node) {
  const exported = ts.factory.createModifier(ts.SyntaxKind.ExportKeyword);
  const alias = ts.factory.createTypeAliasDeclaration([exported], name, undefined, node.type);
  ts.setSyntheticLeadingComments(alias, ts.getSyntheticLeadingComments(node));
  const file = ts.createSourceFile('api.ts', '', ts.ScriptTarget.Latest);
  return ts.createPrinter().printNode(ts.EmitHint.Unspecified, alias, file);
}
