import type { LedgerDatabase } from '../../ledger/ledger-database.ts';

/** A block whose header is covered by its hash, and whose data root by the header. */
export type ProvenBlock = {
  hash: string;
  /** JSON, as in a proof. */
  header: string;
  dataRoot: string;
  bridgeRoot: string;
  /** Keccak-256 hashes of the submitted data, in their order. */
  leaves: readonly Uint8Array[];
};

const LEAF_BYTES = 32;

/** The blocks of confirmed submissions, from which their proofs are made. Throws LedgerError. */
export class ProofStore {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** Stores the block unless it is stored, and returns its row. */
  keep({ hash, header, dataRoot, bridgeRoot, leaves }: ProvenBlock): number {
    const id = this.#db.value<number>`SELECT id FROM proof_blocks WHERE hash = ${hash}`;
    if (id !== undefined) return id;
    const { lastInsertRowid } = this.#db.run`
      INSERT INTO proof_blocks (hash, header, data_root, bridge_root, leaves)
      VALUES (${hash}, ${header}, ${dataRoot}, ${bridgeRoot}, ${Buffer.concat(leaves)})`;
    return Number(lastInsertRowid);
  }

  find(id: number): ProvenBlock | undefined {
    type Row = Omit<ProvenBlock, 'leaves'> & { leaves: Buffer };
    const row = this.#db.row<Row>`
      SELECT hash, header, data_root AS dataRoot, bridge_root AS bridgeRoot, leaves FROM proof_blocks WHERE id = ${id}`;
    if (!row) return undefined;
    const count = row.leaves.length / LEAF_BYTES;
    const leafAt = (index: number) =>
      row.leaves.subarray(index * LEAF_BYTES, (index + 1) * LEAF_BYTES);
    return { ...row, leaves: Array.from({ length: count }, (_, index) => leafAt(index)) };
  }
}
