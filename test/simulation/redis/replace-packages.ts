// Imported first: the packages bullmq and ioredis are replaced by the model in this process.
import { registerHooks } from 'node:module';

const REPLACED = ['bullmq', 'ioredis'];

registerHooks({
  resolve(specifier, context, next) {
    if (!REPLACED.includes(specifier)) return next(specifier, context);
    return { url: new URL(`./${specifier}.ts`, import.meta.url).href, shortCircuit: true };
  },
});
