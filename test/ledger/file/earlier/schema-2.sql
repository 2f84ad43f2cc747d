PRAGMA auto_vacuum = 0;
PRAGMA application_id = 1684109153;
PRAGMA user_version = 2;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('audit_key','3ad9a4a68f5952fe6ecdf6b4ea5e642c837ae1795ae25d98f5bb5b08a6d3f004');
INSERT INTO meta VALUES('written_at','1795412428813');
CREATE TABLE upstreams (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'closed',
    out_since INTEGER,
    outage_ms INTEGER NOT NULL DEFAULT 0,
    asked_until INTEGER
  ) STRICT, WITHOUT ROWID;
INSERT INTO upstreams VALUES('default','closed',NULL,0,1795412435090);
CREATE TABLE submissions (
    id INTEGER PRIMARY KEY,
    submission_id TEXT NOT NULL UNIQUE,
    upstream TEXT NOT NULL REFERENCES upstreams (name),
    status TEXT NOT NULL CHECK (status IN ('tracking', 'pending', 'failing', 'finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled')),
    watched INTEGER NOT NULL CHECK (watched IN (0, 1)),
    stuck INTEGER NOT NULL DEFAULT 0 CHECK (stuck IN (0, 1)),
    version INTEGER NOT NULL,
    polls INTEGER NOT NULL DEFAULT 0,
    polled_at INTEGER,
    unanswered_since INTEGER,
    tracked_at INTEGER NOT NULL,
    finalized_at INTEGER,
    deadline_at INTEGER NOT NULL,
    grace_ends_at INTEGER NOT NULL,
    stuck_at INTEGER NOT NULL,
    outage_ms_before INTEGER NOT NULL,
    metadata TEXT
  , callback_url TEXT) STRICT;
INSERT INTO submissions VALUES(1,'69b92d80-afe8-4568-b0d9-14ba7d5c346c','default','finalized',0,0,3,2,1795412432866,NULL,1795412431025,1795412432866,1795498831025,1795413331025,1795413031025,0,'{"order":4711}','http://127.0.0.1:18091/good/callback');
INSERT INTO submissions VALUES(2,'e4b3fcdb-fbad-449d-89b0-6a2556bc131f','default','finalized',0,0,3,2,1795412433236,NULL,1795412431108,1795412433236,1795498831108,1795413331108,1795413031108,0,NULL,NULL);
INSERT INTO submissions VALUES(3,'abbc1b98-1858-4ed5-a60a-3d6a0d36722e','default','finalized',0,0,3,2,1795412432974,NULL,1795412431108,1795412432974,1795498831108,1795413331108,1795413031108,0,NULL,NULL);
INSERT INTO submissions VALUES(4,'bd51dfb6-b76a-4fcc-8505-32ba87d472d1','default','finalized',0,0,3,2,1795412433522,NULL,1795412431145,1795412433522,1795416031115,1795413331145,1795413031145,0,NULL,NULL);
INSERT INTO submissions VALUES(5,'00000000-0000-4000-8000-0000000000AB','default','tracking',1,0,1,2,1795412433466,NULL,1795412431248,NULL,1795498831248,1795413331248,1795413031248,0,NULL,NULL);
INSERT INTO submissions VALUES(6,'00000000-0000-4000-8000-0000000000ab','default','tracking',1,0,1,2,1795412433653,NULL,1795412431266,NULL,1795498831266,1795413331266,1795413031266,0,NULL,NULL);
INSERT INTO submissions VALUES(7,'00000000-0000-4000-8000-0000000000CD','default','tracking',1,0,1,2,1795412433043,NULL,1795412431303,NULL,1795498831303,1795413331303,1795413031303,0,NULL,NULL);
INSERT INTO submissions VALUES(8,'not-a-uuid','default','rejected',0,0,2,1,1795412431329,NULL,1795412431314,NULL,1795498831314,1795412432314,1795412432314,0,NULL,NULL);
INSERT INTO submissions VALUES(9,'00000000-0000-4000-8000-0000000000cc','default','cancelled',0,0,2,1,1795412431353,NULL,1795412431322,NULL,1795498831322,1795413331322,1795413031322,0,NULL,NULL);
INSERT INTO submissions VALUES(10,'87b21ac3-f8e2-437e-946d-e98b5f324b83','default','pending',1,0,2,1,1795412434363,NULL,1795412434347,NULL,1795498834347,1795413334347,1795413034347,0,NULL,NULL);
CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    submission INTEGER NOT NULL REFERENCES submissions (id),
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL,
    previous_status TEXT,
    upstream_state TEXT,
    error TEXT,
    answer TEXT,
    UNIQUE (submission, version)
  ) STRICT;
INSERT INTO history VALUES(1,1,1,1795412431025,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(2,2,1,1795412431108,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(3,3,1,1795412431108,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(4,1,2,1795412431118,'pending','tracking','Pending',NULL,'{"id":"69b92d80-afe8-4568-b0d9-14ba7d5c346c","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:30.127Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(5,4,1,1795412431145,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(6,2,2,1795412431129,'pending','tracking','Pending',NULL,'{"id":"e4b3fcdb-fbad-449d-89b0-6a2556bc131f","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:30.177Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(7,3,2,1795412431130,'pending','tracking','Pending',NULL,'{"id":"abbc1b98-1858-4ed5-a60a-3d6a0d36722e","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:30.198Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(8,5,1,1795412431248,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(9,6,1,1795412431266,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(10,4,2,1795412431263,'pending','tracking','Pending',NULL,'{"id":"bd51dfb6-b76a-4fcc-8505-32ba87d472d1","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:30.201Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(11,7,1,1795412431303,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(12,8,1,1795412431314,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(13,9,1,1795412431322,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(14,9,2,1795412431330,'cancelled','tracking',NULL,NULL,NULL);
INSERT INTO history VALUES(15,8,2,1795412431329,'rejected','tracking',NULL,'invalid character: expected [0-9a-fA-F-], found `n` at 1',NULL);
INSERT INTO history VALUES(16,1,3,1795412432866,'finalized','pending','Finalized',NULL,'{"id":"69b92d80-afe8-4568-b0d9-14ba7d5c346c","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0x4f7efd697f6aa4ffbe785475830fd108cb27ee07bdfd72d4bccc0000ce31192b","block_number":3590824861,"created_at":"2026-11-23T05:40:30.127Z","data_billed":"6","data_hash":"0x9101783bf3e4ac84d8d48720a42bcb43e9bb61bc0cf7a2986587c4ccd1edf85a","fees":"2300468138722947649333163560631462","tx_hash":"0xaf2fbd16938744b745847d577919a7f84cb8f1b6197e13082c89fbfc3708abcb","tx_index":0,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(17,3,3,1795412432974,'finalized','pending','Finalized',NULL,'{"id":"abbc1b98-1858-4ed5-a60a-3d6a0d36722e","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0x4f7efd697f6aa4ffbe785475830fd108cb27ee07bdfd72d4bccc0000ce31192b","block_number":3590824861,"created_at":"2026-11-23T05:40:30.198Z","data_billed":"6","data_hash":"0x68367e230b2fdd7c3324a467bda2247f7ee39814f5f06f3542e3d3f638bef274","fees":"21073580504280163459859","tx_hash":"0xa05f827d9afa9bbdc47206f31d2a19da117077efecd4d38ac2b865aa0322da26","tx_index":2,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(18,2,3,1795412433236,'finalized','pending','Finalized',NULL,'{"id":"e4b3fcdb-fbad-449d-89b0-6a2556bc131f","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0x4f7efd697f6aa4ffbe785475830fd108cb27ee07bdfd72d4bccc0000ce31192b","block_number":3590824861,"created_at":"2026-11-23T05:40:30.177Z","data_billed":"6","data_hash":"0x2836a57b3d5aace52d0e543e74a855ad5b59534e20c0abd8bd30452b7aeeb3eb","fees":"424764942346748136403706347393168845","tx_hash":"0x6ad8faf6ac9ff28466a1b88d0e72fae50f2f071cf9679b2c431942dc7a6af53b","tx_index":1,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(19,4,3,1795412433522,'finalized','pending','Finalized',NULL,'{"id":"bd51dfb6-b76a-4fcc-8505-32ba87d472d1","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0x4f7efd697f6aa4ffbe785475830fd108cb27ee07bdfd72d4bccc0000ce31192b","block_number":3590824861,"created_at":"2026-11-23T05:40:30.201Z","data_billed":"6","data_hash":"0xedf263a6e1ee519ea12c7652f22fe15a8a2888f3167bca831a014810092ea0c9","fees":"35711692723454151435195860011189","tx_hash":"0x1efa0ed445d9bf0f88520b56c25390fcaa09fb0b8b85c3d49194cd2a28910e22","tx_index":3,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(20,10,1,1795412434347,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(21,10,2,1795412434363,'pending','tracking','Pending',NULL,'{"id":"87b21ac3-f8e2-437e-946d-e98b5f324b83","state":"Pending","error":null,"data":{"amount_data":"4.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:33.942Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
CREATE TABLE credentials (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
  ) STRICT;
INSERT INTO credentials VALUES(1,X'9381f0ed38b4dfa002bc0debec07766e7214d16af83ecef5c95238cbf031d5c3','user','portal',1795412433854,NULL,NULL);
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    caller TEXT NOT NULL,
    credential_id INTEGER REFERENCES credentials (id),
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT,
    email_hash TEXT,
    email_masked TEXT
  ) STRICT;
INSERT INTO audit VALUES(1,1795412431719,'DAWATCH_ADMIN_TOKEN',NULL,'users.get','not_found',NULL,'2c76bab62f16fce3d9ad6afc11bd50c564a5eebc5a742593bfdbef334a6a3187','s…@example.com');
CREATE TABLE IF NOT EXISTS "outbox" (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    upstream TEXT REFERENCES upstreams (name),
    submission INTEGER REFERENCES submissions (id),
    history_seq INTEGER REFERENCES history (seq),
    detail TEXT
  ) STRICT;
INSERT INTO outbox VALUES(1,'evt_558e164140664c43a8fd2a672d9c6ce7','submission.cancelled',1795412431330,'default',9,14,NULL);
INSERT INTO outbox VALUES(2,'evt_7c20ffbc5c1e4cb1b124a29c29b3e8c6','submission.rejected',1795412431329,'default',8,15,NULL);
INSERT INTO outbox VALUES(3,'evt_94c155a560464c668f679aad5f0f3e55','submission.finalized',1795412432866,'default',1,16,NULL);
INSERT INTO outbox VALUES(4,'evt_0ef994c5ce29458aa00f4cd72435f091','submission.finalized',1795412432974,'default',3,17,NULL);
INSERT INTO outbox VALUES(5,'evt_d89172a89b2f4c79b65573bb968df752','submission.finalized',1795412433236,'default',2,18,NULL);
INSERT INTO outbox VALUES(6,'evt_040c56d1748e439ebc3b1582cc95a529','submission.finalized',1795412433522,'default',4,19,NULL);
CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id TEXT NOT NULL UNIQUE,
    url TEXT,
    types TEXT NOT NULL,
    metadata TEXT,
    description TEXT NOT NULL,
    signature TEXT NOT NULL,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    -- Another address, enabled, disabled: what was under way belongs to the revision before.
    revision INTEGER NOT NULL DEFAULT 0,
    disabled_reason TEXT,
    failing_since INTEGER,
    failed_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK ((enabled = 1) = (disabled_reason IS NULL))
  ) STRICT;
INSERT INTO webhooks VALUES(1,'callbacks',NULL,'["submission.*"]',NULL,'the callback_url of submissions','v1',1,0,NULL,NULL,NULL,1795412428863,1795412428863);
INSERT INTO webhooks VALUES(2,'wh_9b363e47cb8d490d88b3c6f881bd2ef5','http://127.0.0.1:18091/good','["submission.*"]',NULL,'orders','v1',1,0,NULL,NULL,NULL,1795412429829,1795412429829);
INSERT INTO webhooks VALUES(3,'wh_af9641a60bfd476e8327bc7ec93dc35b','http://127.0.0.1:18091/bad','["submission.finalized"]',NULL,'','v1',1,0,NULL,1795412433951,1795412433968,1795412429966,1795412429966);
INSERT INTO webhooks VALUES(4,'wh_31923cb2757d4a598be33880ccf2b1bd','http://127.0.0.1:18091/off','["*"]','{"shop":"north"}','','v1',0,1,'operator',NULL,NULL,1795412430061,1795412430080);
CREATE TABLE webhook_secrets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    secret TEXT NOT NULL,
    public_key TEXT,
    expires_at INTEGER
  ) STRICT;
INSERT INTO webhook_secrets VALUES(1,1,'whsec_UlTpItFa/+Y4670qZzgJ6dyJEen+7jWiC8Wwcvnjhow=',NULL,NULL);
INSERT INTO webhook_secrets VALUES(2,2,'whsec_CwEfl4EKNngan384YZytqgBX83LpEBqWlLXqiena/ZI=',NULL,NULL);
INSERT INTO webhook_secrets VALUES(3,3,'whsec_4WPm1dKOIoYWvSp1XrgeiPlhoywusHZFM0j1zPzD6us=',NULL,NULL);
INSERT INTO webhook_secrets VALUES(4,4,'whsec_1TZFPPsep0sJV9v9Aq2noKj491lBYHD3wVGybkQ68/4=',NULL,NULL);
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event INTEGER NOT NULL REFERENCES outbox (seq),
    destination TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead', 'discarded')),
    dead_reason TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    CHECK ((state = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((state = 'waiting') = (ended_at IS NULL)),
    CHECK ((state = 'dead') = (dead_reason IS NOT NULL))
  ) STRICT;
INSERT INTO deliveries VALUES(1,1,'webhook:wh_9b363e47cb8d490d88b3c6f881bd2ef5','delivered',NULL,1,NULL,1795412431330,1795412431689);
INSERT INTO deliveries VALUES(2,2,'webhook:wh_9b363e47cb8d490d88b3c6f881bd2ef5','delivered',NULL,1,NULL,1795412431329,1795412433939);
INSERT INTO deliveries VALUES(3,3,'callback:http://127.0.0.1:18091','delivered',NULL,1,NULL,1795412432866,1795412433951);
INSERT INTO deliveries VALUES(4,3,'webhook:wh_9b363e47cb8d490d88b3c6f881bd2ef5','delivered',NULL,1,NULL,1795412432866,1795412433949);
INSERT INTO deliveries VALUES(5,3,'webhook:wh_af9641a60bfd476e8327bc7ec93dc35b','waiting',NULL,1,1795412438193,1795412432866,NULL);
INSERT INTO deliveries VALUES(6,4,'webhook:wh_9b363e47cb8d490d88b3c6f881bd2ef5','delivered',NULL,1,NULL,1795412432974,1795412433956);
INSERT INTO deliveries VALUES(7,4,'webhook:wh_af9641a60bfd476e8327bc7ec93dc35b','waiting',NULL,1,1795412439937,1795412432974,NULL);
INSERT INTO deliveries VALUES(8,5,'webhook:wh_9b363e47cb8d490d88b3c6f881bd2ef5','delivered',NULL,1,NULL,1795412433236,1795412433956);
INSERT INTO deliveries VALUES(9,5,'webhook:wh_af9641a60bfd476e8327bc7ec93dc35b','waiting',NULL,1,1795412439132,1795412433236,NULL);
INSERT INTO deliveries VALUES(10,6,'webhook:wh_9b363e47cb8d490d88b3c6f881bd2ef5','delivered',NULL,1,NULL,1795412433522,1795412433956);
INSERT INTO deliveries VALUES(11,6,'webhook:wh_af9641a60bfd476e8327bc7ec93dc35b','waiting',NULL,1,1795412438763,1795412433522,NULL);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    delivery INTEGER NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    http_status INTEGER,
    error TEXT,
    response TEXT
  ) STRICT;
INSERT INTO attempts VALUES(1,1,1795412431346,343,204,NULL,NULL);
INSERT INTO attempts VALUES(2,2,1795412431716,2223,204,NULL,NULL);
INSERT INTO attempts VALUES(3,4,1795412432872,1077,204,NULL,NULL);
INSERT INTO attempts VALUES(4,5,1795412432884,1067,500,'answered with 500','broken');
INSERT INTO attempts VALUES(5,3,1795412432908,1043,204,NULL,NULL);
INSERT INTO attempts VALUES(6,8,1795412433947,9,204,NULL,NULL);
INSERT INTO attempts VALUES(7,10,1795412433948,8,204,NULL,NULL);
INSERT INTO attempts VALUES(8,6,1795412433946,10,204,NULL,NULL);
INSERT INTO attempts VALUES(9,7,1795412433955,3,500,'answered with 500','broken');
INSERT INTO attempts VALUES(10,9,1795412433959,2,500,'answered with 500','broken');
INSERT INTO attempts VALUES(11,11,1795412433966,2,500,'answered with 500','broken');
CREATE TABLE alerts (
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    summary TEXT NOT NULL,
    count INTEGER,
    since INTEGER NOT NULL,
    told_at INTEGER NOT NULL,
    PRIMARY KEY (rule, subject)
  ) STRICT, WITHOUT ROWID;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('outbox',6);
INSERT INTO sqlite_sequence VALUES('webhooks',4);
INSERT INTO sqlite_sequence VALUES('webhook_secrets',4);
INSERT INTO sqlite_sequence VALUES('history',21);
INSERT INTO sqlite_sequence VALUES('deliveries',11);
INSERT INTO sqlite_sequence VALUES('audit',1);
CREATE INDEX submissions_watched ON submissions (upstream, id) WHERE watched = 1;
CREATE INDEX submissions_by_status ON submissions (status, id);
CREATE TRIGGER a_final_status_stays BEFORE UPDATE OF status ON submissions
    WHEN OLD.status IN ('finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled') AND NEW.status <> OLD.status
    BEGIN SELECT RAISE(ABORT, 'a final status has no way out'); END;
CREATE TRIGGER history_is_append_only BEFORE UPDATE ON history
    BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE INDEX submissions_stuck ON submissions (upstream) WHERE stuck = 1 AND watched = 1;
CREATE INDEX outbox_by_submission ON outbox (submission) WHERE submission IS NOT NULL;
CREATE INDEX outbox_failures ON outbox (at) WHERE type IN ('submission.failing', 'submission.failed');
CREATE TRIGGER events_never_change BEFORE UPDATE ON outbox
    BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;
CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (webhook);
CREATE INDEX deliveries_waiting ON deliveries (destination, next_at, id) WHERE state = 'waiting';
CREATE INDEX deliveries_waiting_since ON deliveries (created_at) WHERE state = 'waiting';
CREATE INDEX deliveries_dead ON deliveries (ended_at, destination) WHERE state = 'dead';
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE state <> 'waiting';
CREATE INDEX deliveries_by_event ON deliveries (event);
CREATE INDEX deliveries_by_destination ON deliveries (destination, id);
CREATE INDEX attempts_by_delivery ON attempts (delivery, id);
CREATE TRIGGER attempts_are_append_only BEFORE UPDATE ON attempts
    BEGIN SELECT RAISE(ABORT, 'attempts are append-only'); END;
COMMIT;
