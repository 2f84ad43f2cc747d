import { useState } from 'preact/hooks';

/**
 * Asks once per submitted form, and keeps the answer until the next one.
 * @template T
 * @param {(fields: Record<string, string>) => Promise<T>} ask
 */
export function useAsk(ask) {
  const [state, setState] = useState(
    /** @type {{ isBusy: boolean, answer?: T, error?: Error }} */
    ({ isBusy: false }),
  );
  const submit = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const fields = Object.fromEntries([...form].map(([name, value]) => [name, String(value)]));
    setState({ isBusy: true });
    try {
      setState({ isBusy: false, answer: await ask(fields) });
    } catch (error) {
      setState({ isBusy: false, error: error instanceof Error ? error : new Error(String(error)) });
    }
  };
  return { ...state, submit };
}
