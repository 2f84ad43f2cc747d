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
const schemas = membersOf(membersOf(nodes, 'components'), 'schemas').map((node) => ({
  name: node.name.text,
  node,
}));
const queries = membersOf(nodes, 'operations').flatMap(({ name, type }) => {
  const node = membersOf(type.members, 'parameters').find(({ name }) => name.text === 'query');
  const title = `${name.text[0].toUpperCase()}${name.text.slice(1)}Query`;
  return node.type.members ? [{ name: title, node }] : [];
});
const types = [...schemas, ...queries].map((type) => ({
  ...type,
  members: new Map((type.node.type.members ?? []).map((member) => [textOf(member), member])),
}));
const written = [
  '// Written by `npm run docs:client` from /openapi.json.',
  ...types.slice(0, schemas.length).map(declarationOf),
  // A query leaves out what is undefined.
  ...types
    .slice(schemas.length)
    .map((query) => declarationOf(query).replaceAll(/(\?: .+);$/gm, '$1 | undefined;')),
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

/** Returns the text of an exported type, with its comment. */
function declarationOf({ name, node, members }) {
  const exported = ts.factory.createModifier(ts.SyntaxKind.ExportKeyword);
  const type = extensionOf(members) ?? node.type;
  const alias = ts.factory.createTypeAliasDeclaration([exported], name, undefined, type);
  ts.setSyntheticLeadingComments(alias, ts.getSyntheticLeadingComments(node));
  return textOf(alias);
}

/** Returns the largest other type of which a type has every member, extended by its further ones. */
function extensionOf(members) {
  const [base] = types
    .filter((type) => type.members.size > 3 && type.members.size < members.size)
    .filter((type) => [...type.members.keys()].every((text) => members.has(text)))
    .toSorted((a, b) => b.members.size - a.members.size);
  if (!base) return undefined;
  const further = [...members].flatMap(([text, member]) =>
    base.members.has(text) ? [] : [member],
  );
  return ts.factory.createIntersectionTypeNode([
    ts.factory.createTypeReferenceNode(base.name),
    ts.factory.createTypeLiteralNode(further),
  ]);
}

function textOf(node) {
  const file = ts.createSourceFile('api.ts', '', ts.ScriptTarget.Latest);
  return ts.createPrinter().printNode(ts.EmitHint.Unspecified, node, file);
}
