// Checks that node_modules holds nothing but what package-lock.json names, nested packages included: `npm ci` verifies the
// hash of each package in the lockfile, and of nothing that an install script fetches.
import { missingFromLockfile } from './missing-from-lockfile.ts';

const found = missingFromLockfile('.');
for (const line of found) console.error(line);
if (found.length > 0) {
  console.error(
    'Installed without the lockfile: find the script that fetches it, see that it does not run, and depend on the package itself.',
  );
  process.exit(1);
}
console.log('everything installed is in package-lock.json');
