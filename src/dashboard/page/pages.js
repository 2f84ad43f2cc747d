import { DeliveriesPage } from './notifications/delivery-log.js';
import { WebhookPage } from './notifications/webhook-page.js';
import { WebhooksPage } from './notifications/webhooks-page.js';
import { OverviewPage } from './overview/overview-page.js';
import { PacingPage } from './pacing/pacing-page.js';
import { ReportsPage } from './reports/reports-page.js';
import { mayLookUpUsers, maySeeNotifications, maySeeSubmissions } from './session/access.js';
import { SubmissionPage } from './submissions/submission-page.js';
import { SubmissionsPage } from './submissions/submissions-page.js';
import { UsersPage } from './users/users-page.js';

/** Pages by their name in the URL, in navigation order. `All`: the list; `One`: the page of a single item. */
export const PAGES = {
  overview: { title: 'Overview', may: maySeeSubmissions, All: OverviewPage },
  submissions: { title: 'Submissions', may: maySeeSubmissions, All: SubmissionsPage, One: SubmissionPage },
  pacing: { title: 'Pacing', may: maySeeSubmissions, All: PacingPage },
  reports: { title: 'Reports', may: maySeeSubmissions, All: ReportsPage },
  webhooks: { title: 'Webhooks', may: maySeeNotifications, All: WebhooksPage, One: WebhookPage },
  deliveries: { title: 'Deliveries', may: maySeeNotifications, All: DeliveriesPage },
  users: { title: 'Users', may: mayLookUpUsers, All: UsersPage },
};
