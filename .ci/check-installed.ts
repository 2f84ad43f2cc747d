// Checks that node_modules contains only packages that package-lock.json names, including nested
// ones. `npm ci` verifies the hash of each package in the lockfile, but not of files that an
// install script downloads.
import { missingFromLockfile } from './missing-from-lockfile.ts';

const found = missingFromLockfile('.');
for (const line of found) console.error(line);
if (found.length > 0) {
  console.error(
    'Installed without the lockfile: prevent the install script that fetches it, and depend on the package itself.',
  );
  process.exit(1);
}
console.log('all installed packages are in package-lock.json');
