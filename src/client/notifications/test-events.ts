/** A test of one webhook. */
export type TestEvent = {
  id: string;
  type: 'webhook.test';
  timestamp: string;
  data: { sequence: number; webhook_id: string };
};

/** A test of one channel. */
export type ChannelTestEvent = {
  id: string;
  type: 'channel.test';
  timestamp: string;
  data: { sequence: number; channel: string };
};
