// Fills a ledger in a process of its own, whose memory is returned at its end.
import { fillLargeLedger } from './fill.ts';

const [folder = '', submissions = ''] = process.argv.slice(2);
fillLargeLedger(folder, Number(submissions));
