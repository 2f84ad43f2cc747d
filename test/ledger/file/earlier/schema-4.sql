PRAGMA auto_vacuum = 2;
PRAGMA application_id = 1684109153;
PRAGMA user_version = 4;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('audit_key','e3303830018e40def25a4872cc15fb338df75ce51f62c0755d82da336878a2a2');
INSERT INTO meta VALUES('pacing:default','{"version":1,"ticks":[[3590824885,1795412443148,1795412444076]],"enough":3,"groups":{"meanSize":0,"youngestMs":[],"distances":[]},"disorder":0}');
INSERT INTO meta VALUES('written_at','1795412441513');
CREATE TABLE upstreams (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'closed',
    out_since INTEGER,
    outage_ms INTEGER NOT NULL DEFAULT 0,
    asked_until INTEGER
  ) STRICT, WITHOUT ROWID;
INSERT INTO upstreams VALUES('default','closed',NULL,0,1795412448028);
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
  , callback_url TEXT, ended_at INTEGER) STRICT;
INSERT INTO submissions VALUES(1,'b6362864-2c91-4b7e-83d5-6753a8e714b4','default','finalized',0,0,3,2,1795412444138,NULL,1795412443100,1795412444138,1795498843100,1795413343100,1795413043100,0,'{"order":4711}','http://127.0.0.1:18091/good/callback',1795412444138);
INSERT INTO submissions VALUES(2,'1d886011-2715-4a7a-943e-3d7b1490352e','default','finalized',0,0,3,2,1795412444076,NULL,1795412443114,1795412444076,1795498843114,1795413343114,1795413043114,0,NULL,NULL,1795412444076);
INSERT INTO submissions VALUES(3,'5844539c-ad43-46b1-8066-c6558eceac20','default','finalized',0,0,3,2,1795412444135,NULL,1795412443114,1795412444135,1795498843114,1795413343114,1795413043114,0,NULL,NULL,1795412444135);
INSERT INTO submissions VALUES(4,'0a7d25b4-5430-4e5c-b517-79c3f3909617','default','finalized',0,0,3,2,1795412444141,NULL,1795412443141,1795412444141,1795416043118,1795413343141,1795413043141,0,NULL,NULL,1795412444141);
INSERT INTO submissions VALUES(5,'00000000-0000-4000-8000-0000000000AB','default','tracking',1,0,1,4,1795412447437,NULL,1795412443169,NULL,1795498843169,1795413343169,1795413043169,0,NULL,NULL,NULL);
INSERT INTO submissions VALUES(6,'00000000-0000-4000-8000-0000000000ab','default','tracking',1,0,1,4,1795412446970,NULL,1795412443190,NULL,1795498843190,1795413343190,1795413043190,0,NULL,NULL,NULL);
INSERT INTO submissions VALUES(7,'00000000-0000-4000-8000-0000000000CD','default','tracking',1,0,1,4,1795412447139,NULL,1795412443195,NULL,1795498843195,1795413343195,1795413043195,0,NULL,NULL,NULL);
INSERT INTO submissions VALUES(8,'not-a-uuid','default','rejected',0,0,2,1,1795412443210,NULL,1795412443201,NULL,1795498843201,1795412444201,1795412444201,0,NULL,NULL,1795412443210);
INSERT INTO submissions VALUES(9,'00000000-0000-4000-8000-0000000000cc','default','cancelled',0,0,2,1,1795412443211,NULL,1795412443208,NULL,1795498843208,1795413343208,1795413043208,0,NULL,NULL,1795412443215);
INSERT INTO submissions VALUES(10,'3bfe39fe-235c-40a3-84bb-0b1bb80c36bb','default','pending',1,0,2,1,1795412447783,NULL,1795412447316,NULL,1795498847316,1795413347316,1795413047316,0,NULL,NULL,NULL);
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
INSERT INTO history VALUES(1,1,1,1795412443100,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(2,2,1,1795412443114,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(3,3,1,1795412443114,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(4,1,2,1795412443123,'pending','tracking','Pending',NULL,'{"id":"b6362864-2c91-4b7e-83d5-6753a8e714b4","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:42.279Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(5,4,1,1795412443141,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(6,2,2,1795412443133,'pending','tracking','Pending',NULL,'{"id":"1d886011-2715-4a7a-943e-3d7b1490352e","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:42.285Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(7,3,2,1795412443139,'pending','tracking','Pending',NULL,'{"id":"5844539c-ad43-46b1-8066-c6558eceac20","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:42.287Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(8,5,1,1795412443169,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(9,4,2,1795412443177,'pending','tracking','Pending',NULL,'{"id":"0a7d25b4-5430-4e5c-b517-79c3f3909617","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:42.289Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(10,6,1,1795412443190,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(11,7,1,1795412443195,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(12,8,1,1795412443201,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(13,9,1,1795412443208,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(14,8,2,1795412443210,'rejected','tracking',NULL,'invalid character: expected [0-9a-fA-F-], found `n` at 1',NULL);
INSERT INTO history VALUES(15,9,2,1795412443215,'cancelled','tracking',NULL,NULL,NULL);
INSERT INTO history VALUES(16,2,3,1795412444076,'finalized','pending','Finalized',NULL,'{"id":"1d886011-2715-4a7a-943e-3d7b1490352e","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0x4b0ea6a39a7ae6f21299d12ffd947cef7c569eb6bc2d275d88b4d4e164dd4d6b","block_number":3590824885,"created_at":"2026-11-23T05:40:42.285Z","data_billed":"6","data_hash":"0x2836a57b3d5aace52d0e543e74a855ad5b59534e20c0abd8bd30452b7aeeb3eb","fees":"34656092530287686519672002712159","tx_hash":"0xc7ba8922eb6cfa1290ab9a26ddab5770f5c1e7925ccb0c7b227cf366bef690c5","tx_index":1,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(17,3,3,1795412444135,'finalized','pending','Finalized',NULL,'{"id":"5844539c-ad43-46b1-8066-c6558eceac20","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0x4b0ea6a39a7ae6f21299d12ffd947cef7c569eb6bc2d275d88b4d4e164dd4d6b","block_number":3590824885,"created_at":"2026-11-23T05:40:42.287Z","data_billed":"6","data_hash":"0x68367e230b2fdd7c3324a467bda2247f7ee39814f5f06f3542e3d3f638bef274","fees":"8413944249496516095429075","tx_hash":"0xbb746b04b05737361c692fce34a6ce1f724c3c6fd5338db50c6da122b9fc74e8","tx_index":2,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(18,1,3,1795412444138,'finalized','pending','Finalized',NULL,'{"id":"b6362864-2c91-4b7e-83d5-6753a8e714b4","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0x4b0ea6a39a7ae6f21299d12ffd947cef7c569eb6bc2d275d88b4d4e164dd4d6b","block_number":3590824885,"created_at":"2026-11-23T05:40:42.279Z","data_billed":"6","data_hash":"0x9101783bf3e4ac84d8d48720a42bcb43e9bb61bc0cf7a2986587c4ccd1edf85a","fees":"346410426486439951575814874819426707","tx_hash":"0x9e0b7996d6c83235d3ee1b6a89b848fb05438da8dca14adb11d607936f591c74","tx_index":0,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(19,4,3,1795412444141,'finalized','pending','Finalized',NULL,'{"id":"0a7d25b4-5430-4e5c-b517-79c3f3909617","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0x4b0ea6a39a7ae6f21299d12ffd947cef7c569eb6bc2d275d88b4d4e164dd4d6b","block_number":3590824885,"created_at":"2026-11-23T05:40:42.289Z","data_billed":"6","data_hash":"0xedf263a6e1ee519ea12c7652f22fe15a8a2888f3167bca831a014810092ea0c9","fees":"60077656972894530960958129501503634","tx_hash":"0x84c4391aefdd0158c11b54c74e80fc0d6f46152b35da23169d8422a745ec33f5","tx_index":3,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(20,10,1,1795412447316,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(21,10,2,1795412447783,'pending','tracking','Pending',NULL,'{"id":"3bfe39fe-235c-40a3-84bb-0b1bb80c36bb","state":"Pending","error":null,"data":{"amount_data":"4.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:46.909Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
CREATE TABLE credentials (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
  ) STRICT;
INSERT INTO credentials VALUES(1,X'c09037966c9a29c4767d1b2712fda8e480a5e5e7ca76871e52ddd36d0728d307','user','portal',1795412446826,NULL,NULL);
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
INSERT INTO audit VALUES(1,1795412443234,'DAWATCH_ADMIN_TOKEN',NULL,'users.get','not_found',NULL,'77f8e375b35d24ace26bf21a4e0122c320a11762318b62761a4bb277edb39da3','s…@example.com');
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
INSERT INTO outbox VALUES(1,'evt_01b535798c7a46729edd807bdfca6250','submission.rejected',1795412443210,'default',8,14,NULL);
INSERT INTO outbox VALUES(2,'evt_f7afc45d35cf4d7a805cb44ad6ede431','submission.cancelled',1795412443215,'default',9,15,NULL);
INSERT INTO outbox VALUES(3,'evt_25f03f107cd54c998415aa061a7acdf5','submission.finalized',1795412444076,'default',2,16,NULL);
INSERT INTO outbox VALUES(4,'evt_e8c9603554f945cfb1137530e48ab948','submission.finalized',1795412444135,'default',3,17,NULL);
INSERT INTO outbox VALUES(5,'evt_9b459032a16441e1a03ad3d5d9bc3ee6','submission.finalized',1795412444138,'default',1,18,NULL);
INSERT INTO outbox VALUES(6,'evt_a428b6cda1114806930b70d39e26af75','submission.finalized',1795412444141,'default',4,19,NULL);
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
INSERT INTO webhooks VALUES(1,'callbacks',NULL,'["submission.*"]',NULL,'the callback_url of submissions','v1',1,0,NULL,NULL,NULL,1795412441672,1795412441672);
INSERT INTO webhooks VALUES(2,'wh_45da415b40a04b1f962887eac05f3e14','http://127.0.0.1:18091/good','["submission.*"]',NULL,'orders','v1',1,0,NULL,NULL,NULL,1795412442157,1795412442157);
INSERT INTO webhooks VALUES(3,'wh_abef13ed963e42399c527a451cdaf209','http://127.0.0.1:18091/bad','["submission.finalized"]',NULL,'','v1',1,0,NULL,1795412446910,1795412446963,1795412442182,1795412442182);
INSERT INTO webhooks VALUES(4,'wh_414c8e2875e140609a8cad0108b6fd1f','http://127.0.0.1:18091/off','["*"]','{"shop":"north"}','','v1',0,1,'operator',NULL,NULL,1795412442213,1795412442264);
CREATE TABLE webhook_secrets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    secret TEXT NOT NULL,
    public_key TEXT,
    expires_at INTEGER
  ) STRICT;
INSERT INTO webhook_secrets VALUES(1,1,'whsec_OkQKOb1fS5iiBrYx+zCYdeLaYcWhb/b4v1SYm+8Dm9k=',NULL,NULL);
INSERT INTO webhook_secrets VALUES(2,2,'whsec_KLqN/lPYW0S1NJwF+JVUs08vaz3eS/7iWuyfdCZQ9x8=',NULL,NULL);
INSERT INTO webhook_secrets VALUES(3,3,'whsec_a5xseprg9oQa93NxLGWVrbo1xqBXTil2goRwS3RQ1kk=',NULL,NULL);
INSERT INTO webhook_secrets VALUES(4,4,'whsec_6oic5XyssjHwg50XJa3qYRXcmWLIJnMYjhzuholIhE0=',NULL,NULL);
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event INTEGER NOT NULL REFERENCES outbox (seq),
    destination TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead', 'discarded')),
    dead_reason TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    created_at INTEGER NOT NULL,
    ended_at INTEGER, replayed_at INTEGER,
    CHECK ((state = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((state = 'waiting') = (ended_at IS NULL)),
    CHECK ((state = 'dead') = (dead_reason IS NOT NULL))
  ) STRICT;
INSERT INTO deliveries VALUES(1,1,'webhook:wh_45da415b40a04b1f962887eac05f3e14','delivered',NULL,1,NULL,1795412443210,1795412443230,NULL);
INSERT INTO deliveries VALUES(2,2,'webhook:wh_45da415b40a04b1f962887eac05f3e14','delivered',NULL,1,NULL,1795412443215,1795412446899,NULL);
INSERT INTO deliveries VALUES(3,3,'webhook:wh_45da415b40a04b1f962887eac05f3e14','delivered',NULL,1,NULL,1795412444076,1795412446909,NULL);
INSERT INTO deliveries VALUES(4,3,'webhook:wh_abef13ed963e42399c527a451cdaf209','waiting',NULL,1,1795412451694,1795412444076,NULL,NULL);
INSERT INTO deliveries VALUES(5,4,'webhook:wh_45da415b40a04b1f962887eac05f3e14','delivered',NULL,1,NULL,1795412444135,1795412446944,NULL);
INSERT INTO deliveries VALUES(6,4,'webhook:wh_abef13ed963e42399c527a451cdaf209','waiting',NULL,1,1795412451121,1795412444135,NULL,NULL);
INSERT INTO deliveries VALUES(7,5,'callback:http://127.0.0.1:18091','delivered',NULL,1,NULL,1795412444138,1795412446911,NULL);
INSERT INTO deliveries VALUES(8,5,'webhook:wh_45da415b40a04b1f962887eac05f3e14','delivered',NULL,1,NULL,1795412444138,1795412446943,NULL);
INSERT INTO deliveries VALUES(9,5,'webhook:wh_abef13ed963e42399c527a451cdaf209','waiting',NULL,1,1795412452510,1795412444138,NULL,NULL);
INSERT INTO deliveries VALUES(10,6,'webhook:wh_45da415b40a04b1f962887eac05f3e14','delivered',NULL,1,NULL,1795412444141,1795412446943,NULL);
INSERT INTO deliveries VALUES(11,6,'webhook:wh_abef13ed963e42399c527a451cdaf209','waiting',NULL,1,1795412451283,1795412444141,NULL,NULL);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    delivery INTEGER NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    http_status INTEGER,
    error TEXT,
    response TEXT
  ) STRICT;
INSERT INTO attempts VALUES(1,1,1795412443221,9,204,NULL,NULL);
INSERT INTO attempts VALUES(2,2,1795412443232,3667,204,NULL,NULL);
INSERT INTO attempts VALUES(3,3,1795412444100,2809,204,NULL,NULL);
INSERT INTO attempts VALUES(4,4,1795412444108,2802,500,'answered with 500','broken');
INSERT INTO attempts VALUES(5,7,1795412444141,2770,204,NULL,NULL);
INSERT INTO attempts VALUES(6,8,1795412446903,40,204,NULL,NULL);
INSERT INTO attempts VALUES(7,10,1795412446905,38,204,NULL,NULL);
INSERT INTO attempts VALUES(8,5,1795412446902,42,204,NULL,NULL);
INSERT INTO attempts VALUES(9,6,1795412446941,4,500,'answered with 500','broken');
INSERT INTO attempts VALUES(10,9,1795412446951,5,500,'answered with 500','broken');
INSERT INTO attempts VALUES(11,11,1795412446960,3,500,'answered with 500','broken');
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
CREATE INDEX deliveries_dead ON deliveries (ended_at, destination) WHERE state = 'dead';
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE state <> 'waiting';
CREATE INDEX deliveries_by_event ON deliveries (event);
CREATE INDEX deliveries_by_destination ON deliveries (destination, id);
CREATE INDEX attempts_by_delivery ON attempts (delivery, id);
CREATE TRIGGER attempts_are_append_only BEFORE UPDATE ON attempts
    BEGIN SELECT RAISE(ABORT, 'attempts are append-only'); END;
CREATE INDEX submissions_ended ON submissions (ended_at) WHERE ended_at IS NOT NULL AND watched = 0;
CREATE INDEX outbox_by_history ON outbox (history_seq) WHERE history_seq IS NOT NULL;
CREATE INDEX deliveries_waiting_since ON deliveries (coalesce(replayed_at, created_at)) WHERE state = 'waiting';
COMMIT;
