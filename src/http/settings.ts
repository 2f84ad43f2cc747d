import { z } from 'zod';
import { trustedProxyError } from '../lib/addresses.ts';
import { count, section } from '../operations/config/section-values.ts';

const isOrigin = (text: string) =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;

const isBase = (text: string) => {
  const url = URL.parse(text);
  return (
    /^https?:\/\//i.test(text) &&
    url !== null &&
    !/[?#\s]/.test(text) &&
    url.username === '' &&
    url.password === ''
  );
};

const proxy = z.string().superRefine((entry, context) => {
  const message = trustedProxyError(entry);
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

export const serverSection = section({
  host: z.string().min(1).default('127.0.0.1').describe('Address to listen on'),
  public_url: z
    .string()
    .refine(
      isBase,
      'must be an http:// or https:// address without user, query and fragment, like https://dawatch.example.com',
    )
    .optional()
    .describe(
      'Address at which people open the dashboard, for links in messages of channels and in alerts; default: no links',
    ),
  port: count(8080, 0, 65_535).describe('Port to listen on; 0 selects a free port'),
  cors_origins: z
    .array(
      z
        .string()
        .refine(isOrigin, 'must be an origin as browsers send it, like https://app.example'),
    )
    .max(100)
    .default([])
    .describe('Origins whose pages may read responses, matched exactly; empty: none'),
  trusted_proxies: z
    .array(proxy)
    .max(1_000)
    .default([])
    .describe(
      'Proxies in front of the server, as addresses, ranges, `loopback` or `private`. Their X-Forwarded-For header determines the client address for limits, logs and the audit; it is ignored from any other sender',
    ),
});
