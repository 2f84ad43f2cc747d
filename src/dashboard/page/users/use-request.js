import { useState } from 'preact/hooks';

/**
 * Sends one request per submitted form and keeps its result until the next one.
 * @template T
 * @param {(fields: Record<string, string>) => Promise<T>} request
 */
export function useRequest(request) {
  const [state, setState] = useState(
    /** @type {{ isBusy: boolean, result?: T, error?: Error }} */
    ({ isBusy: false }),
  );
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const fields = Object.fromEntries([...form].map(([name, value]) => [name, String(value)]));
    setState({ isBusy: true });
    try {
      setState({ isBusy: false, result: await request(fields) });
    } catch (error) {
      setState({ isBusy: false, error: error instanceof Error ? error : new Error(String(error)) });
    }
  };
  return { ...state, submit };
}
