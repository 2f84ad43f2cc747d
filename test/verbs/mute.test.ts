import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { alertListSchema, muteListSchema, muteSchema } from '../../src/alerts/alerts-routes.ts';
import { call, type HttpResponse, post, problemOf } from '../support/app/http-calls.ts';
import { useNotifyingApp } from '../support/app/notifying-app.ts';
import { eventually } from '../support/until.ts';

const app = useNotifyingApp({ publicUrl: 'https://dawatch.example.com/ops' });
const { admin } = app;

function parse<S extends z.ZodType>(
  { status, text }: HttpResponse,
  expected: number,
  schema: S,
): z.output<S> {
  expect(status, text).toBe(expected);
  return schema.parse(JSON.parse(text));
}

const listed = async (query = '') =>
  parse(await call(app.url, `/v1/alerts${query}`), 200, alertListSchema.strict()).alerts;
const mutes = async () =>
  parse(await admin('GET', '/v1/mutes'), 200, muteListSchema.strict()).mutes;
const muted = async (body: object) =>
  parse(await admin('POST', '/v1/mutes', body), 201, muteSchema.strict());
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

/** The alert about the upstream, which does not respond. */
async function firing() {
  await post(app.url, { submission_id: randomUUID() });
  return eventually(async () => {
    const [alert] = (await listed()).filter(({ rule }) => rule === 'upstream_down');
    return alert ?? expect.fail('no alert');
  });
}

describe('alerts', () => {
  it('are listed with their state and a link, for a service as well', async () => {
    const alert = await firing();
    expect(alert).toMatchObject({
      rule: 'upstream_down',
      subject: 'default',
      summary: expect.stringContaining('The upstream default is not responding'),
      firing: true,
      resolved_at: null,
      muted_until: null,
      link: 'https://dawatch.example.com/ops/#/pacing',
    });
    expect(await listed('?state=resolved')).toEqual([]);
    expect((await listed('?state=all&limit=1')).map(({ id }) => id)).toEqual([alert.id]);
  });

  it.each([
    ['GET', '/v1/alerts?state=open', 400],
    ['DELETE', '/v1/mutes/4711', 404],
  ])('%s %s is %i', async (method, path, status) => {
    const response = await admin(method, path);
    expect([response.status, problemOf(response).status]).toEqual([status, status]);
  });
});

describe('mutes', () => {
  it('show in the alerts that they cover, and end when they are deleted', async () => {
    const alert = await firing();
    const until = inHours(2);
    const made = await muted({
      rule: 'upstream_down',
      subject: 'default',
      until,
      reason: 'the chain is halted',
    });
    expect(made).toMatchObject({
      until,
      reason: 'the chain is halted',
      created_by: 'DAWATCH_ADMIN_TOKEN',
    });
    expect((await listed())[0]).toMatchObject({ id: alert.id, muted_until: until });
    expect(await mutes()).toEqual([made]);
    expect((await admin('DELETE', `/v1/mutes/${made.id}`)).status).toBe(204);
    expect((await listed())[0]).toMatchObject({ id: alert.id, muted_until: null });
    expect(await mutes()).toEqual([]);
  });

  it.each<[string, object, string, string]>([
    ['no end', {}, '/until', 'must be a time'],
    ['an end in the past', { until: inHours(-1) }, '/until', 'must be in the future'],
    ['an end in two years', { until: inHours(2 * 366 * 24) }, '/until', 'within 366 days'],
    ['an unknown rule', { rule: 'upstream', until: inHours(1) }, '/rule', 'must be'],
    [
      'a subject without a rule',
      { subject: 'default', until: inHours(1) },
      '/subject',
      'requires a rule',
    ],
    ['a reason of two lines', { until: inHours(1), reason: 'a\nb' }, '/reason', 'single line'],
  ])('with %s are refused', async (_name, body, pointer, detail) => {
    const response = await admin('POST', '/v1/mutes', body);
    expect(response.status).toBe(400);
    const { errors = [] } = problemOf(response);
    expect(errors).toContainEqual({ pointer, detail: expect.stringContaining(detail) });
    expect(await mutes()).toEqual([]);
  });
});
