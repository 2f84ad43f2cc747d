import { readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyProof } from '../../../src/client/proof.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { goTo, SKIPPED, useBrowser } from '../../support/app/browser.ts';
import { call, pathOf, post } from '../../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../../support/app/lookups.ts';
import { openApp } from '../../support/app/running-app.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const browser = useBrowser();

describe.skipIf(SKIPPED)('the page of a confirmed submission', () => {
  it('says where the data are, and downloads the proof', async () => {
    const sandbox = await startSandbox({ options: { speed: 200 } });
    onTestFinished(() => sandbox.close());
    const urls = [sandbox.url.replace('http', 'ws')];
    const app = await openApp({
      database: `${tempFolder()}/ledger.db`,
      upstreamUrl: sandbox.url,
      adminToken: ADMIN_TOKEN,
      upstream: { chain: { urls, verify: 'require', verify_data: true } },
    });
    onTestFinished(() => app.close());
    const data = Buffer.from('some data');
    const id = sandbox.model.submit(data, Date.now());
    await post(app.url, { submission_id: id });
    await call(app.url, `${pathOf(id)}/wait?timeout_s=120`);
    const page = await browser.openAs(ADMIN_TOKEN, app.url);
    await goTo(page, `submissions/${id}`);
    await page.getByText(/^The data are in block [\d,]+, data root 0x[0-9a-f]{64}/).waitFor();
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download the proof' }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe(`proof-${id}.json`);
    const proof = JSON.parse(readFileSync(await download.path(), 'utf8'));
    expect(() => verifyProof(proof, data)).not.toThrow();
  });
});
