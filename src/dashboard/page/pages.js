import { AlertsPage } from './alerts/alerts-page.js';
import { AuditPage } from './audit/audit-page.js';
import { ChannelsPage } from './notifications/channels-page.js';
import { DeliveriesPage } from './notifications/delivery-log.js';
import { WebhookPage } from './notifications/webhook-page.js';
import { WebhooksPage } from './notifications/webhooks-page.js';
import { OverviewPage } from './overview/overview-page.js';
import { PacingPage } from './pacing/pacing-page.js';
import { ReportsPage } from './reports/reports-page.js';
import {
  isAdmin,
  mayLookUpUsers,
  maySeeNotifications,
  maySeeOperations,
  maySeeSubmissions,
} from './session/access.js';
import { SubmissionPage } from './submissions/submission-page.js';
import { SubmissionsPage } from './submissions/submissions-page.js';
import { TokensPage } from './tokens/tokens-page.js';
import { UsersPage } from './users/users-page.js';

/**
 * Pages by their name in the URL, in navigation order. `key`: a letter of its own, which opens it
 * after `g`; `All`: the list; `One`: the page of a single item.
 * @satisfies {Record<string, { title: string, key: string, may: (session: any) => boolean, All: any, One?: any }>}
 */
export const PAGES = {
  overview: { title: 'Overview', key: 'o', may: maySeeSubmissions, All: OverviewPage },
  submissions: {
    title: 'Submissions',
    key: 's',
    may: maySeeSubmissions,
    All: SubmissionsPage,
    One: SubmissionPage,
  },
  pacing: { title: 'Pacing', key: 'p', may: maySeeSubmissions, All: PacingPage },
  reports: { title: 'Reports', key: 'r', may: maySeeSubmissions, All: ReportsPage },
  webhooks: {
    title: 'Webhooks',
    key: 'w',
    may: maySeeNotifications,
    All: WebhooksPage,
    One: WebhookPage,
  },
  deliveries: { title: 'Deliveries', key: 'd', may: maySeeNotifications, All: DeliveriesPage },
  channels: { title: 'Channels', key: 'c', may: maySeeOperations, All: ChannelsPage },
  alerts: { title: 'Alerts', key: 'a', may: maySeeSubmissions, All: AlertsPage },
  users: { title: 'Users', key: 'u', may: mayLookUpUsers, All: UsersPage },
  tokens: { title: 'Tokens', key: 't', may: isAdmin, All: TokensPage },
  audit: { title: 'Audit', key: 'l', may: isAdmin, All: AuditPage },
};
