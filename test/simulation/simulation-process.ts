// Runs one simulation: <seed> <days> <faults left out>. Prints a line after each virtual hour, and
// its result.
import { writeSync } from 'node:fs';
import { simulate } from './simulate.ts';

const [seed, days, without = ''] = process.argv.slice(2);
const result = await simulate({
  seed: Number(seed),
  days: Number(days),
  without: new Set(without.split(',').filter((kind) => kind !== '')),
  onHour: (hour) => writeSync(1, `hour ${hour}\n`),
});
writeSync(1, `\nresult: ${JSON.stringify(result)}\n`);
process.exit();
