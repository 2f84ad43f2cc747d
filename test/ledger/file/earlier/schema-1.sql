PRAGMA auto_vacuum = 0;
PRAGMA application_id = 1684109153;
PRAGMA user_version = 1;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('audit_key','b6f9562edf5b85386741664b6d7c6c27b78b49275e371020e9f797be7956a2eb');
INSERT INTO meta VALUES('written_at','1795412420286');
CREATE TABLE upstreams (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'closed',
    out_since INTEGER,
    outage_ms INTEGER NOT NULL DEFAULT 0,
    asked_until INTEGER
  ) STRICT, WITHOUT ROWID;
INSERT INTO upstreams VALUES('default','closed',NULL,0,1795412426208);
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
  ) STRICT;
INSERT INTO submissions VALUES(1,'dcf69213-5dbe-4622-aa89-8a04d5741529','default','finalized',0,0,3,2,1795412424217,NULL,1795412421866,1795412424217,1795498821866,1795413321866,1795413021866,0,'{"order":4711}');
INSERT INTO submissions VALUES(2,'5f27ba6b-5979-4e15-a1ce-df536eff948a','default','finalized',0,0,3,2,1795412423688,NULL,1795412421926,1795412423688,1795498821926,1795413321926,1795413021926,0,NULL);
INSERT INTO submissions VALUES(3,'c43ce7aa-389c-4e70-a130-8b2842a0c845','default','finalized',0,0,3,2,1795412423949,NULL,1795412421926,1795412423949,1795498821926,1795413321926,1795413021926,0,NULL);
INSERT INTO submissions VALUES(4,'630efbdc-a1b9-400f-8866-eea02f4224e8','default','finalized',0,0,3,2,1795412423869,NULL,1795412422034,1795412423869,1795416021945,1795413322034,1795413022034,0,NULL);
INSERT INTO submissions VALUES(5,'00000000-0000-4000-8000-0000000000AB','default','tracking',1,0,1,2,1795412424443,NULL,1795412422063,NULL,1795498822063,1795413322063,1795413022063,0,NULL);
INSERT INTO submissions VALUES(6,'00000000-0000-4000-8000-0000000000ab','default','tracking',1,0,1,3,1795412425777,NULL,1795412422077,NULL,1795498822077,1795413322077,1795413022077,0,NULL);
INSERT INTO submissions VALUES(7,'00000000-0000-4000-8000-0000000000CD','default','tracking',1,0,1,2,1795412424261,NULL,1795412422097,NULL,1795498822097,1795413322097,1795413022097,0,NULL);
INSERT INTO submissions VALUES(8,'not-a-uuid','default','rejected',0,0,2,1,1795412422147,NULL,1795412422127,NULL,1795498822127,1795412423127,1795412423127,0,NULL);
INSERT INTO submissions VALUES(9,'00000000-0000-4000-8000-0000000000cc','default','cancelled',0,0,2,1,1795412422421,NULL,1795412422134,NULL,1795498822134,1795413322134,1795413022134,0,NULL);
INSERT INTO submissions VALUES(10,'9110d17f-9111-442d-8b0e-4bbc8681f88d','default','pending',1,0,2,1,1795412425494,NULL,1795412425476,NULL,1795498825476,1795413325476,1795413025476,0,NULL);
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
INSERT INTO history VALUES(1,1,1,1795412421866,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(2,2,1,1795412421926,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(3,3,1,1795412421926,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(4,1,2,1795412421972,'pending','tracking','Pending',NULL,'{"id":"dcf69213-5dbe-4622-aa89-8a04d5741529","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:20.879Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(5,4,1,1795412422034,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(6,2,2,1795412422029,'pending','tracking','Pending',NULL,'{"id":"5f27ba6b-5979-4e15-a1ce-df536eff948a","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:20.942Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(7,3,2,1795412422032,'pending','tracking','Pending',NULL,'{"id":"c43ce7aa-389c-4e70-a130-8b2842a0c845","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:21.023Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(8,5,1,1795412422063,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(9,4,2,1795412422072,'pending','tracking','Pending',NULL,'{"id":"630efbdc-a1b9-400f-8866-eea02f4224e8","state":"Pending","error":null,"data":{"amount_data":"6.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:21.026Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(10,6,1,1795412422077,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(11,7,1,1795412422097,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(12,8,1,1795412422127,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(13,9,1,1795412422134,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(14,8,2,1795412422147,'rejected','tracking',NULL,'invalid character: expected [0-9a-fA-F-], found `n` at 1',NULL);
INSERT INTO history VALUES(15,9,2,1795412422196,'cancelled','tracking',NULL,NULL,NULL);
INSERT INTO history VALUES(16,2,3,1795412423688,'finalized','pending','Finalized',NULL,'{"id":"5f27ba6b-5979-4e15-a1ce-df536eff948a","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0xd955d4d1c5484427a8415dc2942615bbba53fae39660ef66fb429181fb5158d7","block_number":3590824842,"created_at":"2026-11-23T05:40:20.942Z","data_billed":"6","data_hash":"0x2836a57b3d5aace52d0e543e74a855ad5b59534e20c0abd8bd30452b7aeeb3eb","fees":"190764479341452392618611300930851049","tx_hash":"0x9fd22cfb1f33fee8559d5e281beef81436eead09e82f6b21d3ce3e1e52d004b0","tx_index":1,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(17,4,3,1795412423869,'finalized','pending','Finalized',NULL,'{"id":"630efbdc-a1b9-400f-8866-eea02f4224e8","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0xd765ac23645bdefd94d399bcbd26a5f9ff92099b2bb7b62488d086438b9d493f","block_number":3590824843,"created_at":"2026-11-23T05:40:21.026Z","data_billed":"6","data_hash":"0xedf263a6e1ee519ea12c7652f22fe15a8a2888f3167bca831a014810092ea0c9","fees":"2364758263152383220605205","tx_hash":"0x60354155121864cf4f5624d2aa7d42077f8edcb9642c11e93e8c89ddd2bae875","tx_index":1,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(18,3,3,1795412423949,'finalized','pending','Finalized',NULL,'{"id":"c43ce7aa-389c-4e70-a130-8b2842a0c845","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0xd765ac23645bdefd94d399bcbd26a5f9ff92099b2bb7b62488d086438b9d493f","block_number":3590824843,"created_at":"2026-11-23T05:40:21.023Z","data_billed":"6","data_hash":"0x68367e230b2fdd7c3324a467bda2247f7ee39814f5f06f3542e3d3f638bef274","fees":"10107035760914129144282848768864097381","tx_hash":"0x7fc5fc681b321e4cd53d055849481e16d31d4e5cec59f8bd48a12eebfc460c26","tx_index":0,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(19,1,3,1795412424217,'finalized','pending','Finalized',NULL,'{"id":"dcf69213-5dbe-4622-aa89-8a04d5741529","state":"Finalized","error":null,"data":{"amount_data":"6.00 B","block_hash":"0xd955d4d1c5484427a8415dc2942615bbba53fae39660ef66fb429181fb5158d7","block_number":3590824842,"created_at":"2026-11-23T05:40:20.879Z","data_billed":"6","data_hash":"0x9101783bf3e4ac84d8d48720a42bcb43e9bb61bc0cf7a2986587c4ccd1edf85a","fees":"3644775285903949497722625","tx_hash":"0x6c9e045545684a0adbac55e3f2d56a9a3cdd1b67b3f89bfee5705f33dfe7793d","tx_index":0,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
INSERT INTO history VALUES(20,10,1,1795412425476,'tracking',NULL,NULL,NULL,NULL);
INSERT INTO history VALUES(21,10,2,1795412425494,'pending','tracking','Pending',NULL,'{"id":"9110d17f-9111-442d-8b0e-4bbc8681f88d","state":"Pending","error":null,"data":{"amount_data":"4.00 B","block_hash":null,"block_number":null,"created_at":"2026-11-23T05:40:25.046Z","data_billed":null,"data_hash":null,"fees":null,"tx_hash":null,"tx_index":null,"user_id":"2b89e1eb-b3ae-4261-b5cb-e47b0b1d804a"}}');
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    upstream TEXT NOT NULL REFERENCES upstreams (name),
    submission INTEGER REFERENCES submissions (id),
    history_seq INTEGER REFERENCES history (seq)
  ) STRICT;
INSERT INTO outbox VALUES(1,'evt_527303778e9449f1b606e416d65931da','submission.rejected',1795412422147,'default',8,14);
INSERT INTO outbox VALUES(2,'evt_00b7fd1aa5c44ccab6b1c587869a4fa3','submission.cancelled',1795412422196,'default',9,15);
INSERT INTO outbox VALUES(3,'evt_2121ac2d956f491f8697dad373629e8e','submission.finalized',1795412423688,'default',2,16);
INSERT INTO outbox VALUES(4,'evt_0fd9cc359e4f411dafbc15584606b3a4','submission.finalized',1795412423869,'default',4,17);
INSERT INTO outbox VALUES(5,'evt_dffbac775f394a6db2442a48c36fc975','submission.finalized',1795412423949,'default',3,18);
INSERT INTO outbox VALUES(6,'evt_23c28308eb774d9fb653a5e33c1a2016','submission.finalized',1795412424217,'default',1,19);
CREATE TABLE credentials (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
  ) STRICT;
INSERT INTO credentials VALUES(1,X'28c3d712d21311db97e2a70c1b7754e141bd7119d8e8ac2af2605d2bf4b0becf','user','portal',1795412424957,NULL,NULL);
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
INSERT INTO audit VALUES(1,1795412422445,'DAWATCH_ADMIN_TOKEN',NULL,'users.get','not_found',NULL,'d1c21f8fb942be92d77385330c95fca0354f5c3e807b457d25b9f85122527fd4','s…@example.com');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('history',21);
INSERT INTO sqlite_sequence VALUES('outbox',6);
INSERT INTO sqlite_sequence VALUES('audit',1);
CREATE INDEX submissions_watched ON submissions (upstream, id) WHERE watched = 1;
CREATE INDEX submissions_by_status ON submissions (status, id);
CREATE TRIGGER a_final_status_stays BEFORE UPDATE OF status ON submissions
    WHEN OLD.status IN ('finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled') AND NEW.status <> OLD.status
    BEGIN SELECT RAISE(ABORT, 'a final status has no way out'); END;
CREATE TRIGGER history_is_append_only BEFORE UPDATE ON history
    BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER events_never_change BEFORE UPDATE ON outbox
    BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
COMMIT;
