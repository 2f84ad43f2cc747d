// One thread of npm run bench:pacing. Runs each measurement that it receives.
import { parentPort } from 'node:worker_threads';
import { type Measurement, measure } from './measure.ts';

parentPort?.on('message', (measurement: Measurement) =>
  parentPort?.postMessage(measure(measurement)),
);
