/** Before the first of a run: what to set to have its chances again. */
export default function printSeed(): void {
  console.log(`faults: TEST_SEED=${process.env.TEST_SEED} npm run test:faults repeats the chances of this run`);
}
