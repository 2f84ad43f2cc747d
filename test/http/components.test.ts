import { beforeAll, describe, expect, it } from 'vitest';
import { fetchDocument } from '../support/app/openapi-document.ts';
import { useApp } from '../support/app/running-app.ts';

type Json = Record<string, unknown>;
/** Lines of formatted JSON that a schema may have to be written at two places. */
const MAX_REPEATED_LINES = 12;

const app = useApp();
let schemas: Record<string, Json>;
/** Every place of the document with a schema, by its path; components are places of their own. */
let places: [place: string, schema: Json][];
let operations: Awaited<ReturnType<typeof fetchDocument>>['operations'];
let raw: {
  paths: Record<string, Record<string, Json>>;
  components: { schemas: Record<string, Json> };
};

beforeAll(async () => {
  const spec = await fetchDocument(app.url);
  operations = spec.operations;
  raw = JSON.parse(spec.text);
  schemas = raw.components.schemas;
  places = [...placesIn('paths', raw.paths), ...placesIn('components/schemas', schemas)];
});

/** Returns every object below a node except examples, whose keys are data. */
function placesIn(place: string, node: unknown): [string, Json][] {
  if (typeof node !== 'object' || node === null) return [];
  const below = Object.entries(node)
    .filter(([key]) => !['example', 'examples', 'default'].includes(key))
    .flatMap(([key, value]) => placesIn(`${place}/${key}`, value));
  return Array.isArray(node) ? below : [[place, node as Json], ...below];
}

const isRef = (schema: unknown) =>
  /^#\/components\/schemas\/\w+$/.test(String((schema as Json | undefined)?.$ref));
const namesOf = (found: [string, Json][]) => found.map(([place]) => place);

describe('a client generator', () => {
  it('gets a named type for every body of a request or response', () => {
    const bodies = places.filter(([place]) => /\/content\/application\/json\/schema$/.test(place));
    expect(bodies.length).toBeGreaterThan(20);
    const unnamed = bodies.filter(
      ([, schema]) => !isRef(schema) && !(schema.type === 'array' && isRef(schema.items)),
    );
    expect(namesOf(unnamed)).toEqual([]);
  });

  it.each([
    'Submission',
    'SubmissionWithHistory',
    'HistoryEntry',
    'Webhook',
    'Delivery',
    'Problem',
    'Event',
  ])('gets the type %s, described', (name) => {
    expect(schemas[name]).toMatchObject({ description: expect.any(String) });
  });

  it('gets names of types that start with a capital letter, and no type that nothing uses', () => {
    const used = new Set(JSON.stringify(raw).match(/(?<="#\/components\/schemas\/)\w+/g));
    for (const name of Object.keys(schemas)) {
      expect(name).toMatch(/^[A-Z][A-Za-z]+$/);
      expect(used, name).toContain(name);
    }
  });

  it('gets every enumeration as a named type', () => {
    const inlined = places.filter(
      ([place, { enum: values }]) => values && !/^components\/schemas\/\w+$/.test(place),
    );
    expect(namesOf(inlined)).toEqual([]);
  });

  it(`gets no schema of more than ${MAX_REPEATED_LINES} lines twice`, () => {
    const seen = new Map<string, string[]>();
    for (const [place, schema] of places) {
      if (!('properties' in schema || 'anyOf' in schema || 'items' in schema)) continue;
      const text = JSON.stringify(
        { ...schema, description: undefined, examples: undefined },
        null,
        1,
      );
      if (text.split('\n').length > MAX_REPEATED_LINES)
        seen.set(text, [...(seen.get(text) ?? []), place]);
    }
    expect(seen.size).toBeGreaterThan(20);
    expect([...seen.values()].filter((found) => found.length > 1)).toEqual([]);
  });

  it('gets null as a type, as OpenAPI 3.1 has it', () => {
    expect(JSON.stringify(raw)).not.toContain('"nullable"');
    const avoidable = places.filter(([, { anyOf }]) => {
      const types =
        Array.isArray(anyOf) && anyOf.length === 2 ? anyOf.map(({ type }) => String(type)) : [];
      return (
        types.includes('null') &&
        types.some((type) => ['string', 'number', 'integer', 'boolean'].includes(type))
      );
    });
    expect(namesOf(avoidable)).toEqual([]);
    expect(schemas.Submission?.properties).toMatchObject({ error: { type: ['string', 'null'] } });
  });

  it('gets whole numbers as integers, also in queries and paths', () => {
    const parameters = [...operations].flatMap(([route, { parameters: all }]) =>
      all.map(({ name, schema }): [string, unknown] => [`${route} ${name}`, schema]),
    );
    const of = (name: string) => Object.fromEntries(parameters)[name];
    expect(of('GET /v1/submissions limit')).toEqual({
      type: 'integer',
      minimum: 1,
      maximum: 1_000,
      default: 100,
    });
    expect(of('GET /v1/submissions/{id}/wait timeout_s')).toMatchObject({
      type: 'integer',
      default: 30,
    });
    expect(of('GET /v1/events after')).toEqual({ type: 'integer', minimum: 0 });
    expect(of('GET /v1/deliveries/{id} id')).toEqual({ type: 'integer', minimum: 1 });
    const digits = parameters.filter(([, schema]) =>
      /"pattern":"\^(\[1-9\]|\\\\d)/.test(JSON.stringify(schema)),
    );
    expect(digits.map(([name]) => name)).toEqual([]);
  });
});
