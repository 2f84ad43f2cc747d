import { count, decimal, wholeDuration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Facts } from '../parts/parts.js';

/**
 * The service level objective of an upstream and its error budget. @param {{ objective: any,
 * counts: { good: number, bad: number } | null }} props `counts`: of the period
 */
export function Objective({ objective, counts }) {
  const { target_percent, within_s, good, bad, attained_percent, error_budget_left, burn_rates } =
    objective;
  return html`<section aria-labelledby="report-objective">
    <h2 id="report-objective">Objective: ${target_percent} % known within ${wholeDuration(within_s)}</h2>
    <${Facts}
      of=${[
        ['In this period', counts && shareOf(counts)],
        [
          'Last 30 days',
          attained_percent === null ? null : `${attained_percent} % of ${count(good + bad)}`,
        ],
        [
          'Error budget left',
          html`<span class=${error_budget_left < 0 ? 'wrong' : ''}>${decimal(100 * error_budget_left)} %</span>`,
        ],
        ...Object.entries(burn_rates).map(([window, rate]) => [
          `Burn rate, last ${window}`,
          rate === null ? null : decimal(Number(rate), 2),
        ]),
      ]}
    />
    <p class="muted">A burn rate of 1 spends the error budget in exactly 30 days.</p>
  </section>`;
}

/** @param {{ good: number, bad: number }} counts */
function shareOf({ good, bad }) {
  if (good + bad === 0) return null;
  return `${decimal((100 * good) / (good + bad), 2)} %, ${count(bad)} late`;
}
