/** Prints the variable that repeats the random choices of this run. */
export default function printSeed(): void {
  console.log(
    `faults: TEST_SEED=${process.env.TEST_SEED} npm run test:faults repeats the chances of this run`,
  );
}
