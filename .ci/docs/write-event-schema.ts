// Generates docs/events.schema.json, the JSON Schema of events, from the code.
import { writeFileSync } from 'node:fs';
import { eventJsonSchema } from '../../src/notifications/event-body.ts';

writeFileSync('docs/events.schema.json', `${JSON.stringify(eventJsonSchema(), null, 2)}\n`);
