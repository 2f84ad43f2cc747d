// Writes docs/settings.md, every setting, from the schema that checks them.
import { writeFileSync } from 'node:fs';
import { settingsPage } from './settings-page.ts';

writeFileSync('docs/settings.md', settingsPage());
