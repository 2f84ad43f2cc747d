import { describe, expect, it } from 'vitest';
import { ALERT_RULES } from '../../src/notifications/alert.ts';
import { alertPath, linkTo, submissionPath } from '../../src/notifications/message.ts';

describe('a link to the dashboard', () => {
  it.each([
    ['https://dawatch.example.com', 'https://dawatch.example.com/#/'],
    ['https://dawatch.example.com/', 'https://dawatch.example.com/#/'],
    ['https://example.com/ops//', 'https://example.com/ops/#/'],
    ['http://10.0.0.1:8080', 'http://10.0.0.1:8080/#/'],
  ])('below %s is %s', (publicUrl, expected) => {
    expect(linkTo(publicUrl, '#/')).toBe(expected);
  });

  it('contains no character that ends a link in the markup of a chat service', () => {
    const id = `a b|c>d)e]f*g"h'i<j(k[l!m/n?o#p&q%r`;
    const link = linkTo('https://example.com/(ops)|x', submissionPath(id));
    expect(link).not.toMatch(/[|<>()[\]"'*!\s]/);
    expect(decodeURIComponent(link.slice(link.lastIndexOf('/') + 1))).toBe(id);
    expect(submissionPath('lone \ud83d')).toBe('#/submissions/lone%20%EF%BF%BD');
  });

  it.each(ALERT_RULES)('about an alert of the rule %s leads to a page', (rule) => {
    expect(alertPath({ rule, subject: 'webhook:wh_1' })).toMatch(
      /^#\/(?:reports|(?:submissions|deliveries|webhooks)[/?]\S+)?$/,
    );
  });

  it('about a disabled webhook leads to its page', () => {
    expect(alertPath({ rule: 'webhook_disabled', subject: 'webhook:wh_1' })).toBe(
      '#/webhooks/wh_1',
    );
  });
});
