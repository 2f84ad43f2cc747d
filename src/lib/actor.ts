/** A caller over HTTP, a user of the command line, or the server. */
export type Actor = {
  /** Name of the credential; `cli:` and the system's user; dawatch for the server itself. */
  name: string;
  /** Id of the credential; null if the ledger does not have the credential. */
  credentialId: number | null;
  /** Address of the client; null for everything but requests. */
  address: string | null;
};

export const SERVER: Actor = { name: 'dawatch', credentialId: null, address: null };
