import { withPart } from './between.ts';

export const FILE = 'docs/http.md';

type Operation = {
  summary: string;
  tags: string[];
};
type Document = { tags: { name: string }[]; paths: Record<string, Record<string, Operation>> };

/** Returns the page on HTTP with a list of all routes. `text`: the text of /openapi.json. */
export function withRouteTable(page: string, text: string): string {
  const { tags, paths }: Document = JSON.parse(text);
  const routes = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ path, method, operation })),
  );
  const rows = tags.flatMap(({ name }) =>
    routes.filter(({ operation }) => operation.tags[0] === name).map(rowOf),
  );
  return withPart(page, 'routes', rows.join('\n'));
}

function rowOf(route: { path: string; method: string; operation: Operation }): string {
  const { path, method, operation } = route;
  return `- \`${method.toUpperCase()} ${path}\`: ${operation.summary}`;
}
