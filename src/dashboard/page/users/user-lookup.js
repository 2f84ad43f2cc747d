import { withQuery } from '../data/api.js';
import { text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Facts, Failure } from '../parts/parts.js';
import { useRequest } from './use-request.js';

/** One user, by name and address. @param {{ api: import('../data/api.js').Api }} props */
export function UserLookup({ api }) {
  const { isBusy, result, error, submit } = useRequest(({ name, email }) =>
    api.get(withQuery('users/get_user', { name, email })),
  );
  return html`<section aria-labelledby="lookup">
    <h2 id="lookup">Look up a user</h2>
    <form class="filter" onSubmit=${submit}>
      <label><span>Name</span><input name="name" required maxlength="200" autocomplete="off" /></label>
      <label><span>E-mail address</span><input name="email" type="email" required maxlength="254" autocomplete="off" /></label>
      <button class="primary" disabled=${isBusy}>Look up</button>
    </form>
    <div aria-live="polite">
      ${error && html`<${Failure} error=${error} />`}
      ${result && html`<${Facts} of=${Object.entries(result).map(([name, value]) => [name, html`<span class="value">${text(value)}</span>`])} />`}
    </div>
  </section>`;
}
