// Checks the import rules of dependency-cruiser.json. The cruiser silently skips TypeScript that it
// cannot parse, so a run that visited fewer modules than there are source files fails.
import { readdirSync } from 'node:fs';
import { cruise } from 'dependency-cruiser';
import rules from '../dependency-cruiser.json' with { type: 'json' };

// The compiled packages are below src, too.
const BUILT = /^(?:client|pacing)\/dist\//;
const expected = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
  (name) => /\.[jt]s$/.test(name) && !BUILT.test(name),
).length;
const { output } = await cruise(['src'], {
  ruleSet: rules,
  validate: true,
  doNotFollow: { path: 'node_modules' },
  exclude: { path: '^src/(client|pacing)/dist/' },
  tsPreCompilationDeps: true,
  enhancedResolveOptions: {
    extensions: ['.ts', '.js', '.json'],
    exportsFields: ['exports'],
    conditionNames: ['import', 'node'],
  },
} as never);
if (typeof output === 'string') throw new Error('expected a result, not text');
const seen = output.modules.filter(({ source }) => source.startsWith('src/')).length;
const imports = output.summary.totalDependenciesCruised ?? 0;
for (const { from, to, rule } of output.summary.violations)
  console.error(`${rule.name}: ${from} → ${to}`);
if (seen < expected || imports === 0) {
  console.error(
    `only ${seen} of ${expected} files and ${imports} imports were read: is @swc/core installed?`,
  );
  process.exit(1);
}
if (output.summary.error > 0) process.exit(1);
console.log(`import rules hold: ${seen} files, ${imports} imports`);
