import { describe, expect, it } from 'vitest';
import { checkWebhookUrl } from '../../src/notifications/channels/webhook.ts';
import { createAddressGuard } from '../../src/notifications/transport/address-guard.ts';

const outside = { allowHttp: false, guard: createAddressGuard({ allow: [] }) };
const inside = {
  allowHttp: true,
  guard: createAddressGuard({ allow: ['127.0.0.0/8', '10.0.0.0/8'] }),
};
const ofLength = (length: number) => 'https://example.com/'.padEnd(length, 'x');

describe('events may be sent to', () => {
  it.each([
    'https://example.com',
    'https://example.com/hooks/a?key=b%20c',
    'HTTPS://EXAMPLE.COM/@team',
    'https://example.com/?to=a@b.c',
    'https://example.com:8443/?to=a%40b.c',
    'https://example.com:80/',
    'https://example.com:1024/',
    'https://bücher.example/',
    'https://8.8.8.8/',
    // The addresses of these names are checked when a connection is opened.
    'https://receiver/',
    'https://metadata.google.internal/',
    'https://localhost.example.com/',
    ofLength(2_048),
  ])('%s', (url) => {
    expect(checkWebhookUrl(url, outside)).toBeUndefined();
  });

  it.each([
    'http://example.com/',
    'http://127.0.0.1:8080/',
    'https://localhost:8443/',
    'http://a.localhost/',
    'http://10.1',
  ])('%s if the operator allows it', (url) => {
    expect(checkWebhookUrl(url, inside)).toBeUndefined();
  });
});

describe('events may not be sent to', () => {
  it.each([
    ['', /begins with https:/],
    ['example.com/hooks', /begins with https:/],
    ['https://', /begins with https:/],
    ['https://exa mple.com/', /spaces/],
    ['https://example.com/\r\nx-evil: 1', /spaces or control/],
    [' https://example.com/', /spaces/],
    [ofLength(2_049), /2048 characters/],
    ['http://example.com/', /begins with https:.*webhooks\.allow_http/],
    ['ftp://example.com/', /begins with https:/],
    ['javascript:alert(1)', /begins with https:/],
    ['https://user:pass@example.com/', /user name or a password/],
    ['https://@example.com/', /user name or a password/],
    ['https:\\\\@example.com/', /begins with https:/],
    ['https://example.com\\@inside.example/', /backslash/],
    ['https://example.com/#part', /fragment/],
    ['https://example.com/#', /fragment/],
    ['https://example.com:22/', /port/],
    ['https://example.com:65536/', /begins with https:/],
    ['https://user:12/34@example.com/', /password/],
    ['https://example.com:8443/?to=a@b.c', /after the host, @ as %40/],
    ['https://127.0.0.1/', /loopback.*webhooks\.allow/],
    ['https://[::1]/', /loopback/],
    ['https://169.254.169.254/latest/meta-data', /link-local/],
    ['https://localhost/', /this machine.*webhooks\.allow/],
    ['https://a.b.localhost:8443/', /this machine/],
  ])('%s', (url, reason) => {
    expect(checkWebhookUrl(url, outside)).toMatch(reason);
  });

  it.each([
    ['ftp://example.com/', /begins with https:\/\/ or http:/],
    ['http://192.168.1.1/', /private/],
    ['http://localhost:22/', /port/],
  ])('%s even if the operator allows HTTP and some networks', (url, reason) => {
    expect(checkWebhookUrl(url, inside)).toMatch(reason);
  });
});
