/** Upper limit of a Retry-After header. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * Returns the whole milliseconds of a Retry-After header; null if it is absent or unusable (zero,
 * past, malformed). A date is relative to the response's own Date header, so that clock skew has no
 * effect.
 */
export function retryAfterMs(response: {
  retryAfter: string | null;
  date: string | null;
}): number | null {
  const text = response.retryAfter?.trim();
  if (!text) return null;
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : untilDate(text, response.date);
  return ms !== null && ms > 0 ? Math.min(Math.ceil(ms), MAX_RETRY_AFTER_MS) : null;
}

/**
 * The three forms of an HTTP date. Each starts with the weekday; all are GMT, although the last one
 * does not include the zone.
 */
const httpDate =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]*, .* (?:GMT|UTC)| [A-Z][a-z]{2} [ \d]\d .* \d{4})$/;

function untilDate(text: string, dateHeader: string | null): number | null {
  if (!httpDate.test(text) || !dateHeader) return null;
  const ms = Date.parse(/ (?:GMT|UTC)$/.test(text) ? text : `${text} GMT`) - Date.parse(dateHeader);
  return Number.isNaN(ms) ? null : ms;
}
