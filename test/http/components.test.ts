import { beforeAll, describe, expect, it } from 'vitest';
import { fetchDocument } from '../support/app/openapi-document.ts';
import { useApp } from '../support/app/running-app.ts';

type Json = Record<string, unknown>;

const app = useApp();
let schemas: Record<string, Json>;
/** Every place of the document with a schema, by its path; components are places of their own. */
let places: [place: string, schema: Json][];
let raw: {
  paths: Record<string, Record<string, Json>>;
  components: { schemas: Record<string, Json> };
};

beforeAll(async () => {
  const spec = await fetchDocument(app.url);
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

  it('gets every enumeration as a named type', () => {
    const inlined = places.filter(
      ([place, { enum: values }]) => values && !/^components\/schemas\/\w+$/.test(place),
    );
    expect(namesOf(inlined)).toEqual([]);
  });
});
