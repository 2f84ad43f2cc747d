// One thread of npm run bench:pacing: measures what it is sent.
import { parentPort } from 'node:worker_threads';
import { type Measurement, measure } from './measure.ts';

parentPort?.on('message', (measurement: Measurement) => parentPort?.postMessage(measure(measurement)));
