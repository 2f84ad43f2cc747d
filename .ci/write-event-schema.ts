// Writes docs/events.schema.json, what events look like, from the code that makes them.
import { writeFileSync } from 'node:fs';
import { eventJsonSchema } from '../src/http/openapi/event-schema.ts';

writeFileSync('docs/events.schema.json', `${JSON.stringify(eventJsonSchema(), null, 2)}\n`);
