PRAGMA auto_vacuum = 2;
PRAGMA application_id = 1684109153;
PRAGMA user_version = 1;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('audit_key','4043ed8d7251a799fe7b40b2de067782d42ff98d38650de7f69d779f7e608ff8');
INSERT INTO meta VALUES('pacing:default','{"version":4,"clock":null,"senders":null,"ages":{"weights":[0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.1894,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.015573,0.01542,0.01491,0.014416,0.013938,0.013476,0.01303,0.012598,0.012181,0.011777,0.011387,0.01101,0.010645,0.010293,0.0099516,0.0096219,0.0093032,0.008995,0.008697,0.0084089,0.0081303,0.007861,0.0076006,0.0073488,0.0071053,0.0068699,0.0066424,0.0064223,0.0062095,0.0060038,0.0058049,0.0056126,0.0054267,0.0052469,0.0050731,0.004905,0.0047426,0.0045854,0.0044335,0.0042867,0.0041447,0.0040073,0.0038746,0.0037462,0.0036221,0.0035021,0.0033861,0.0032739,0.0031655,0.0030606,0.0029592,0.0028612,0.0027664,0.0026748,0.0025862,0.0025005,0.0024176,0.0023376,0.0022601,0.0021852,0.0021128,0.0020429,0.0019752,0.0019097,0.0018465,0.0017853,0.0017262,0.001669,0.0016137,0.0015602,0.0015085,0.0014586,0.0014102,0.0013635,0.0013184,0.0012747,0.0012325,0.0011916,0.0011522,0.001114,0.0010771,0.0010414,0.0010069,0.00097354],"observed":8},"slots":null}');
INSERT INTO meta VALUES('primary','{"generation":1.0,"installation":"0f938dc8032ba0897a90ee7c3cbd6f4b","since":1795784958492.0}');
INSERT INTO meta VALUES('written_at','1795784958472');
CREATE TABLE upstreams (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'up',
    out_since INTEGER,
    reason TEXT,
    polling_until INTEGER,
    paused_until INTEGER
  ) STRICT, WITHOUT ROWID;
INSERT INTO upstreams VALUES('default','up',NULL,NULL,1795784964329,NULL);
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
    not_found_since INTEGER,
    tracked_at INTEGER NOT NULL,
    finalized_at INTEGER,
    finality_at INTEGER,
    finality_source TEXT CHECK (finality_source IN ('chain', 'estimate')),
    ended_at INTEGER,
    deadline_at INTEGER NOT NULL,
    grace_ends_at INTEGER NOT NULL,
    stuck_at INTEGER NOT NULL,
    metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    callback_url TEXT,
    chain TEXT CHECK (chain IN ('confirmed', 'contradicted', 'unavailable')),
    in_verification INTEGER NOT NULL DEFAULT 0 CHECK (in_verification IN (0, 1)),
    data_hash TEXT
  ) STRICT;
INSERT INTO submissions VALUES(1,'b56bd62c-6f72-4181-86f0-bb4c55b6e064','default','finalized',0,0,2,1,1795784960428,NULL,1795784958722,1795784960428,NULL,NULL,1795784960428,1795871358722,1795785858722,1795785558722,'{"order":0,"note":"ü \"x\""}','http://127.0.0.1:33865/cb',NULL,0,NULL);
INSERT INTO submissions VALUES(2,'c40d8dbe-e50f-4754-925a-8097a5840f7e','default','finalized',0,0,2,1,1795784960451,NULL,1795784958742,1795784960451,NULL,NULL,1795784960451,1795871358742,1795785858742,1795785558742,'{"order":1,"note":"ü \"x\""}','http://127.0.0.1:33865/cb',NULL,0,NULL);
INSERT INTO submissions VALUES(3,'fc4de013-e443-42c4-91f7-eff6658b5bbd','default','finalized',0,0,2,1,1795784960464,NULL,1795784958753,1795784960464,NULL,NULL,1795784960464,1795871358753,1795785858753,1795785558753,'{"order":2,"note":"ü \"x\""}','http://127.0.0.1:33865/cb',NULL,0,NULL);
INSERT INTO submissions VALUES(4,'4b86afb0-f497-4e71-8bde-8317ae5ef367','default','finalized',0,0,2,1,1795784960476,NULL,1795784958763,1795784960476,NULL,NULL,1795784960476,1795871358763,1795785858763,1795785558763,'{"order":3,"note":"ü \"x\""}','http://127.0.0.1:33865/cb',NULL,0,NULL);
INSERT INTO submissions VALUES(5,'f41cf545-9777-4dd8-af78-31457aaca10f','default','finalized',0,0,2,1,1795784960486,NULL,1795784958783,1795784960486,NULL,NULL,1795784960486,1795871358783,1795785858783,1795785558783,'{"order":4,"note":"ü \"x\""}','http://127.0.0.1:33865/cb',NULL,0,NULL);
INSERT INTO submissions VALUES(6,'ba1f12f7-d004-49f4-ae1f-752441b17612','default','finalized',0,0,2,1,1795784960495,NULL,1795784958790,1795784960495,NULL,NULL,1795784960495,1795871358790,1795785858790,1795785558790,'{"order":5,"note":"ü \"x\""}','http://127.0.0.1:33865/cb',NULL,0,NULL);
INSERT INTO submissions VALUES(7,'2d35a304-f209-4e04-8bdb-6103c49a3487','default','finalized',0,0,2,1,1795784960501,NULL,1795784958796,1795784960501,NULL,NULL,1795784960501,1795871358796,1795785858796,1795785558796,'{"order":6,"note":"ü \"x\""}','http://127.0.0.1:33865/cb',NULL,0,NULL);
INSERT INTO submissions VALUES(8,'a0ac10a3-6fb0-4c76-93f5-07d7338d0ae5','default','finalized',0,0,2,1,1795784960508,NULL,1795784958802,1795784960508,NULL,NULL,1795784960508,1795871358802,1795785858802,1795785558802,'{"order":7,"note":"ü \"x\""}','http://127.0.0.1:33865/cb',NULL,0,NULL);
INSERT INTO submissions VALUES(9,'not-a-uuid','default','rejected',0,0,2,1,1795784960515,NULL,1795784958807,NULL,NULL,NULL,1795784960515,1795871358807,1795785858807,1795785558807,NULL,NULL,NULL,0,NULL);
INSERT INTO submissions VALUES(10,'00000000-0000-4000-8000-000000000001','default','tracking',1,0,2,2,1795784962613,1795784960522,1795784958807,NULL,NULL,NULL,NULL,1795871358807,1795785858807,1795785558807,'{"changed":true}',NULL,NULL,0,NULL);
INSERT INTO submissions VALUES(11,'00000000-0000-4000-8000-000000000002','default','cancelled',0,0,2,0,NULL,NULL,1795784958807,NULL,NULL,NULL,1795784962812,1795871358807,1795785858807,1795785558807,NULL,NULL,NULL,0,NULL);
CREATE TABLE submission_metadata (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    submission INTEGER NOT NULL,
    PRIMARY KEY (key, value, submission)
  ) STRICT, WITHOUT ROWID;
INSERT INTO submission_metadata VALUES('changed','true',10);
INSERT INTO submission_metadata VALUES('note','ü "x"',1);
INSERT INTO submission_metadata VALUES('note','ü "x"',2);
INSERT INTO submission_metadata VALUES('note','ü "x"',3);
INSERT INTO submission_metadata VALUES('note','ü "x"',4);
INSERT INTO submission_metadata VALUES('note','ü "x"',5);
INSERT INTO submission_metadata VALUES('note','ü "x"',6);
INSERT INTO submission_metadata VALUES('note','ü "x"',7);
INSERT INTO submission_metadata VALUES('note','ü "x"',8);
INSERT INTO submission_metadata VALUES('order','0',1);
INSERT INTO submission_metadata VALUES('order','1',2);
INSERT INTO submission_metadata VALUES('order','2',3);
INSERT INTO submission_metadata VALUES('order','3',4);
INSERT INTO submission_metadata VALUES('order','4',5);
INSERT INTO submission_metadata VALUES('order','5',6);
INSERT INTO submission_metadata VALUES('order','6',7);
INSERT INTO submission_metadata VALUES('order','7',8);
CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    submission INTEGER NOT NULL REFERENCES submissions (id),
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('tracking', 'pending', 'failing', 'finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled')),
    previous_status TEXT,
    upstream_state TEXT,
    error TEXT,
    response TEXT CHECK (response IS NULL OR json_valid(response)),
    changes TEXT CHECK (changes IS NULL OR json_valid(changes)),
    polls INTEGER NOT NULL,
    chain TEXT CHECK (chain IN ('confirmed', 'contradicted', 'unavailable')),
    chain_reason TEXT,
    UNIQUE (submission, version)
  ) STRICT;
INSERT INTO history VALUES(1,1,1,1795784958722,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(2,2,1,1795784958742,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(3,3,1,1795784958753,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(4,4,1,1795784958763,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(5,5,1,1795784958783,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(6,6,1,1795784958790,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(7,7,1,1795784958796,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(8,8,1,1795784958802,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(9,9,1,1795784958807,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(10,10,1,1795784958807,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(11,11,1,1795784958807,'tracking',NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(12,1,2,1795784960428,'finalized','tracking','Finalized',NULL,'{"id":"b56bd62c-6f72-4181-86f0-bb4c55b6e064","state":"Finalized","error":null,"data":{"amount_data":"2.00 B","block_hash":"0x688c7532cd1bde5367f924329fc0f631dfdce2498b7a072289d494568d475477","block_number":367308730,"created_at":"2026-11-27T13:09:18.712Z","data_billed":"2","data_hash":"0x0ad52e338662c923b15fd45a73c6e97336efccf28a7aef9449443cc6dd7415fb","fees":"8349316117521441202582032894371","tx_hash":"0xa38adbd48d7e1b4946237df4a5e902d4e5a750a7809b303d3cff7cb2f2330e9b","tx_index":0,"user_id":"77bde138-b33c-4966-8ec1-656cf6da3c43"}}',NULL,1,NULL,NULL);
INSERT INTO history VALUES(13,2,2,1795784960451,'finalized','tracking','Finalized',NULL,'{"id":"c40d8dbe-e50f-4754-925a-8097a5840f7e","state":"Finalized","error":null,"data":{"amount_data":"2.00 B","block_hash":"0x688c7532cd1bde5367f924329fc0f631dfdce2498b7a072289d494568d475477","block_number":367308730,"created_at":"2026-11-27T13:09:18.737Z","data_billed":"2","data_hash":"0x8b53639f152c8fc6ef30802fde462ba0be9cf085f7580dc69efd72e002abbb35","fees":"595196622388688116215832699758","tx_hash":"0xd40df06b45cf736de98cef9287678ed71dbc46b07501809a2350146ef8a20b98","tx_index":1,"user_id":"77bde138-b33c-4966-8ec1-656cf6da3c43"}}',NULL,1,NULL,NULL);
INSERT INTO history VALUES(14,3,2,1795784960464,'finalized','tracking','Finalized',NULL,'{"id":"fc4de013-e443-42c4-91f7-eff6658b5bbd","state":"Finalized","error":null,"data":{"amount_data":"2.00 B","block_hash":"0x688c7532cd1bde5367f924329fc0f631dfdce2498b7a072289d494568d475477","block_number":367308730,"created_at":"2026-11-27T13:09:18.749Z","data_billed":"2","data_hash":"0xe788103ee15318fcd2af9b73b4ebbb33a903b020de7b307d71f5fed0f433e548","fees":"3478902939894346584145503764025326996","tx_hash":"0x1918c7750f4c49b8f37cb733b61bdb5f591795759e2585a901332a2f2d0afdbc","tx_index":2,"user_id":"77bde138-b33c-4966-8ec1-656cf6da3c43"}}',NULL,1,NULL,NULL);
INSERT INTO history VALUES(15,4,2,1795784960476,'finalized','tracking','Finalized',NULL,'{"id":"4b86afb0-f497-4e71-8bde-8317ae5ef367","state":"Finalized","error":null,"data":{"amount_data":"2.00 B","block_hash":"0x688c7532cd1bde5367f924329fc0f631dfdce2498b7a072289d494568d475477","block_number":367308730,"created_at":"2026-11-27T13:09:18.759Z","data_billed":"2","data_hash":"0xf451a61749c611ba0fa0e16c61831db44f38c611dff25879cf271a24c81a88b6","fees":"152554588420336272407753784070276699859","tx_hash":"0x5f63ec015dcdee291aad08fce6f06496cf69db2f8b27884d30665a3532b38461","tx_index":3,"user_id":"77bde138-b33c-4966-8ec1-656cf6da3c43"}}',NULL,1,NULL,NULL);
INSERT INTO history VALUES(16,5,2,1795784960486,'finalized','tracking','Finalized',NULL,'{"id":"f41cf545-9777-4dd8-af78-31457aaca10f","state":"Finalized","error":null,"data":{"amount_data":"2.00 B","block_hash":"0x688c7532cd1bde5367f924329fc0f631dfdce2498b7a072289d494568d475477","block_number":367308730,"created_at":"2026-11-27T13:09:18.780Z","data_billed":"2","data_hash":"0xaf327a6478537246e0d9f0c589986d5f067d2e2351a1ca5a0a4962424da0e408","fees":"405223948187244486458239472026911","tx_hash":"0x46a12cfa5e8ab4c0b5fc74590fb2f4cccbc5f40026f74a77133f7639bbfa37b6","tx_index":4,"user_id":"77bde138-b33c-4966-8ec1-656cf6da3c43"}}',NULL,1,NULL,NULL);
INSERT INTO history VALUES(17,6,2,1795784960495,'finalized','tracking','Finalized',NULL,'{"id":"ba1f12f7-d004-49f4-ae1f-752441b17612","state":"Finalized","error":null,"data":{"amount_data":"2.00 B","block_hash":"0x688c7532cd1bde5367f924329fc0f631dfdce2498b7a072289d494568d475477","block_number":367308730,"created_at":"2026-11-27T13:09:18.787Z","data_billed":"2","data_hash":"0x25f682044b5badaff8b296bf6fd676214968b238fcff5559e64f38c88bb9790f","fees":"301458358751100503034","tx_hash":"0xab57c98c3e717804ddd5d863318e9b9b41212a110c2e08f9a0ed2200ad3fcf03","tx_index":5,"user_id":"77bde138-b33c-4966-8ec1-656cf6da3c43"}}',NULL,1,NULL,NULL);
INSERT INTO history VALUES(18,7,2,1795784960501,'finalized','tracking','Finalized',NULL,'{"id":"2d35a304-f209-4e04-8bdb-6103c49a3487","state":"Finalized","error":null,"data":{"amount_data":"2.00 B","block_hash":"0x688c7532cd1bde5367f924329fc0f631dfdce2498b7a072289d494568d475477","block_number":367308730,"created_at":"2026-11-27T13:09:18.794Z","data_billed":"2","data_hash":"0x79b98f273c175489f40b682a0e43f0b22aa3cc9cf2a578e163f291f13fc9f912","fees":"8842617995483470662127287713817","tx_hash":"0x0be6856fa1ab201dea9dab3a16c34eedb377c9fa36632f35e6d155ac8d29a0f3","tx_index":6,"user_id":"77bde138-b33c-4966-8ec1-656cf6da3c43"}}',NULL,1,NULL,NULL);
INSERT INTO history VALUES(19,8,2,1795784960508,'finalized','tracking','Finalized',NULL,'{"id":"a0ac10a3-6fb0-4c76-93f5-07d7338d0ae5","state":"Finalized","error":null,"data":{"amount_data":"2.00 B","block_hash":"0x688c7532cd1bde5367f924329fc0f631dfdce2498b7a072289d494568d475477","block_number":367308730,"created_at":"2026-11-27T13:09:18.800Z","data_billed":"2","data_hash":"0x82396aa34d3d216d4a545cf6f34c62f84985d669d5384686caa9a5de4bc2ef3e","fees":"44042971078428870050005615664","tx_hash":"0xf6c7bdf552c8b40d6c4dec2a6ac29145df22d946bbedf5ed1baa9d0648c89f64","tx_index":7,"user_id":"77bde138-b33c-4966-8ec1-656cf6da3c43"}}',NULL,1,NULL,NULL);
INSERT INTO history VALUES(20,9,2,1795784960515,'rejected','tracking',NULL,'invalid character: expected [0-9a-fA-F-], found `n` at 1',NULL,NULL,1,NULL,NULL);
INSERT INTO history VALUES(21,11,2,1795784962812,'cancelled','tracking',NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO history VALUES(22,10,2,1795784962821,'tracking','tracking',NULL,NULL,NULL,'{"metadata":[null,{"changed":true}]}',2,NULL,NULL);
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    upstream TEXT REFERENCES upstreams (name),
    submission INTEGER REFERENCES submissions (id),
    history_seq INTEGER REFERENCES history (seq),
    detail TEXT CHECK (detail IS NULL OR json_valid(detail))
  ) STRICT;
INSERT INTO outbox VALUES(1,'evt_aefd173f539947ceab6c16dacdd458b5','submission.finalized',1795784960428,'default',1,12,NULL);
INSERT INTO outbox VALUES(2,'evt_f971edfbd76c4da39ada301b03a42cfc','submission.finalized',1795784960451,'default',2,13,NULL);
INSERT INTO outbox VALUES(3,'evt_c2fba98f077c411098a5fe93b753cdc3','submission.finalized',1795784960464,'default',3,14,NULL);
INSERT INTO outbox VALUES(4,'evt_04cb3231be564c289e3b93e0d6ef76ac','submission.finalized',1795784960476,'default',4,15,NULL);
INSERT INTO outbox VALUES(5,'evt_0b6c366100c94139bdeb432da0e0c871','submission.finalized',1795784960486,'default',5,16,NULL);
INSERT INTO outbox VALUES(6,'evt_3f04b36e5f85424dab7b891e5528548a','submission.finalized',1795784960495,'default',6,17,NULL);
INSERT INTO outbox VALUES(7,'evt_31902b6d14444345afa42b20b9c2cdac','submission.finalized',1795784960501,'default',7,18,NULL);
INSERT INTO outbox VALUES(8,'evt_f8265ec69705433ea26dad2777bacaa9','submission.finalized',1795784960508,'default',8,19,NULL);
INSERT INTO outbox VALUES(9,'evt_de876172af2c4e11a380974767e9fea3','submission.rejected',1795784960515,'default',9,20,NULL);
INSERT INTO outbox VALUES(10,'evt_08104b457bcb4c2b8dac06e245733230','submission.cancelled',1795784962812,'default',11,21,NULL);
CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id TEXT NOT NULL UNIQUE,
    url TEXT,
    types TEXT NOT NULL CHECK (json_valid(types)),
    metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    description TEXT NOT NULL,
    secret TEXT NOT NULL,
    old_secret TEXT,
    old_secret_until INTEGER,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    disabled_reason TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    headers TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(headers)),
    CHECK ((enabled = 1) = (disabled_reason IS NULL))
  ) STRICT;
INSERT INTO webhooks VALUES(1,'callbacks',NULL,'["submission.*"]',NULL,'the callback_url of submissions','whsec_GIain0sKdtbiL4No+uKo3slBZbUkkpQC9v3pQNCI6AA=',NULL,NULL,1,NULL,1795784958499,1795784958499,'{}');
INSERT INTO webhooks VALUES(2,'wh_490ad240549d41ed89db662d409e2747','http://127.0.0.1:33865/','["*"]',NULL,'first','whsec_FeUKBKFMq/EDUs6LqemD8Y8hBaZf0OwZr9EZs2JR/Ns=',NULL,NULL,1,NULL,1795784958634,1795784958634,'{}');
CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event INTEGER NOT NULL REFERENCES outbox (seq),
    destination TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead', 'discarded')),
    dead_reason TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    created_at INTEGER NOT NULL,
    waiting_since INTEGER NOT NULL,
    ended_at INTEGER,
    CHECK ((state = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((state = 'waiting') = (ended_at IS NULL)),
    CHECK ((state = 'dead') = (dead_reason IS NOT NULL))
  ) STRICT;
INSERT INTO deliveries VALUES(1,1,'callback:http://127.0.0.1:33865','delivered',NULL,1,NULL,1795784960428,1795784960428,1795784960461);
INSERT INTO deliveries VALUES(2,1,'webhook:wh_490ad240549d41ed89db662d409e2747','delivered',NULL,1,NULL,1795784960428,1795784960428,1795784960456);
INSERT INTO deliveries VALUES(3,2,'callback:http://127.0.0.1:33865','delivered',NULL,1,NULL,1795784960451,1795784960451,1795784960474);
INSERT INTO deliveries VALUES(4,2,'webhook:wh_490ad240549d41ed89db662d409e2747','waiting',NULL,1,1795784964694,1795784960451,1795784960451,NULL);
INSERT INTO deliveries VALUES(5,3,'callback:http://127.0.0.1:33865','waiting',NULL,1,1795784965731,1795784960464,1795784960464,NULL);
INSERT INTO deliveries VALUES(6,3,'webhook:wh_490ad240549d41ed89db662d409e2747','delivered',NULL,1,NULL,1795784960464,1795784960464,1795784960480);
INSERT INTO deliveries VALUES(7,4,'callback:http://127.0.0.1:33865','delivered',NULL,1,NULL,1795784960476,1795784960476,1795784960492);
INSERT INTO deliveries VALUES(8,4,'webhook:wh_490ad240549d41ed89db662d409e2747','delivered',NULL,1,NULL,1795784960476,1795784960476,1795784960490);
INSERT INTO deliveries VALUES(9,5,'callback:http://127.0.0.1:33865','delivered',NULL,1,NULL,1795784960486,1795784960486,1795784960499);
INSERT INTO deliveries VALUES(10,5,'webhook:wh_490ad240549d41ed89db662d409e2747','waiting',NULL,1,1795784965587,1795784960486,1795784960486,NULL);
INSERT INTO deliveries VALUES(11,6,'callback:http://127.0.0.1:33865','delivered',NULL,1,NULL,1795784960495,1795784960495,1795784960509);
INSERT INTO deliveries VALUES(12,6,'webhook:wh_490ad240549d41ed89db662d409e2747','waiting',NULL,1,1795784965271,1795784960495,1795784960495,NULL);
INSERT INTO deliveries VALUES(13,7,'callback:http://127.0.0.1:33865','delivered',NULL,1,NULL,1795784960501,1795784960501,1795784960512);
INSERT INTO deliveries VALUES(14,7,'webhook:wh_490ad240549d41ed89db662d409e2747','waiting',NULL,1,1795784964732,1795784960501,1795784960501,NULL);
INSERT INTO deliveries VALUES(15,8,'callback:http://127.0.0.1:33865','delivered',NULL,1,NULL,1795784960508,1795784960508,1795784960516);
INSERT INTO deliveries VALUES(16,8,'webhook:wh_490ad240549d41ed89db662d409e2747','delivered',NULL,1,NULL,1795784960508,1795784960508,1795784960525);
INSERT INTO deliveries VALUES(17,9,'webhook:wh_490ad240549d41ed89db662d409e2747','delivered',NULL,1,NULL,1795784960515,1795784960515,1795784960527);
INSERT INTO deliveries VALUES(18,10,'webhook:wh_490ad240549d41ed89db662d409e2747','waiting',NULL,1,1795784967037,1795784962812,1795784962812,NULL);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    delivery INTEGER NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    http_status INTEGER,
    error TEXT,
    response TEXT
  ) STRICT;
INSERT INTO attempts VALUES(1,2,1795784960444,12,200,NULL,'thanks');
INSERT INTO attempts VALUES(2,1,1795784960447,14,200,NULL,'thanks');
INSERT INTO attempts VALUES(3,4,1795784960459,12,500,'responded with 500','thanks');
INSERT INTO attempts VALUES(4,3,1795784960462,12,200,NULL,'thanks');
INSERT INTO attempts VALUES(5,6,1795784960473,7,200,NULL,'thanks');
INSERT INTO attempts VALUES(6,5,1795784960474,6,500,'responded with 500','thanks');
INSERT INTO attempts VALUES(7,8,1795784960483,7,200,NULL,'thanks');
INSERT INTO attempts VALUES(8,7,1795784960485,7,200,NULL,'thanks');
INSERT INTO attempts VALUES(9,10,1795784960491,7,500,'responded with 500','thanks');
INSERT INTO attempts VALUES(10,9,1795784960494,5,200,NULL,'thanks');
INSERT INTO attempts VALUES(11,11,1795784960504,5,200,NULL,'thanks');
INSERT INTO attempts VALUES(12,12,1795784960506,6,500,'responded with 500','thanks');
INSERT INTO attempts VALUES(13,13,1795784960506,6,200,NULL,'thanks');
INSERT INTO attempts VALUES(14,15,1795784960513,3,200,NULL,'thanks');
INSERT INTO attempts VALUES(15,14,1795784960513,7,500,'responded with 500','thanks');
INSERT INTO attempts VALUES(16,16,1795784960521,4,200,NULL,'thanks');
INSERT INTO attempts VALUES(17,17,1795784960525,2,200,NULL,'thanks');
INSERT INTO attempts VALUES(18,18,1795784962816,7,500,'responded with 500','thanks');
CREATE TABLE webhook_stats (
    webhook INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    hour INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    responses INTEGER NOT NULL,
    PRIMARY KEY (webhook, hour, duration)
  ) STRICT, WITHOUT ROWID;
CREATE TABLE receivers (
    destination TEXT PRIMARY KEY,
    succeeded_at INTEGER,
    failed_at INTEGER,
    error TEXT,
    failing_since INTEGER
  ) STRICT, WITHOUT ROWID;
INSERT INTO receivers VALUES('webhook:wh_490ad240549d41ed89db662d409e2747',1795784960527,1795784962823,'responded with 500',1795784962823);
CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    summary TEXT NOT NULL,
    count INTEGER,
    since INTEGER NOT NULL,
    sent_at INTEGER,
    resolved_at INTEGER
  ) STRICT;
CREATE TABLE mutes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rule TEXT,
    subject TEXT,
    ends_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    CHECK (rule IS NOT NULL OR subject IS NULL)
  ) STRICT;
INSERT INTO mutes VALUES(1,NULL,NULL,1795788558665,'an upgrade',1795784958671,'DAWATCH_ADMIN_TOKEN');
CREATE TABLE credentials (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at INTEGER,
    revoked_at INTEGER
  ) STRICT;
INSERT INTO credentials VALUES(1,X'13f0da5a8d0ce2cdac0b35060139f8288d50c5a8efaaef88b81edceb85e84291','service','billing',1795784958659,NULL,NULL,NULL);
CREATE TABLE people (
    credential INTEGER PRIMARY KEY REFERENCES credentials (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (issuer, subject)
  ) STRICT;
CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,
    credential_hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    caller TEXT NOT NULL,
    credential_id INTEGER REFERENCES credentials (id),
    address TEXT,
    action TEXT NOT NULL,
    result TEXT NOT NULL,
    subject TEXT,
    detail TEXT,
    email_hash TEXT,
    email_masked TEXT
  ) STRICT;
INSERT INTO audit VALUES(1,1795784958634,'DAWATCH_ADMIN_TOKEN',NULL,'127.0.0.1','webhooks.create','done','wh_490ad240549d41ed89db662d409e2747',NULL,NULL,NULL);
INSERT INTO audit VALUES(2,1795784958659,'DAWATCH_ADMIN_TOKEN',NULL,'127.0.0.1','tokens.create','done','1','service',NULL,NULL);
INSERT INTO audit VALUES(3,1795784958671,'DAWATCH_ADMIN_TOKEN',NULL,'127.0.0.1','mutes.create','done','1','all alerts, 2026-11-27T13:09:18.671Z to 2026-11-27T14:09:18.665Z',NULL,NULL);
INSERT INTO audit VALUES(4,1795784958702,'DAWATCH_ADMIN_TOKEN',NULL,'127.0.0.1','users.get','not_found',NULL,NULL,'be51442805d08b4cfa90e96189aec6e74231b4d358334453eb8efdd54ae035dd','a…@example.com');
INSERT INTO audit VALUES(5,1795784962812,'DAWATCH_API_KEY',NULL,'127.0.0.1','submissions.cancel','done','00000000-0000-4000-8000-000000000002',NULL,NULL,NULL);
INSERT INTO audit VALUES(6,1795784962821,'DAWATCH_API_KEY',NULL,'127.0.0.1','submissions.update','done','00000000-0000-4000-8000-000000000001','metadata',NULL,NULL);
CREATE TABLE finality_sums (
    unit TEXT NOT NULL CHECK (unit IN ('minute', 'hour', 'day')),
    start INTEGER NOT NULL,
    upstream TEXT NOT NULL,
    finalized INTEGER NOT NULL,
    polls INTEGER NOT NULL,
    lags_by_chain INTEGER NOT NULL,
    time_to_finality TEXT NOT NULL CHECK (json_valid(time_to_finality)),
    lag TEXT NOT NULL CHECK (json_valid(lag)),
    PRIMARY KEY (unit, start, upstream)
  ) STRICT, WITHOUT ROWID;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('webhooks',2);
INSERT INTO sqlite_sequence VALUES('audit',6);
INSERT INTO sqlite_sequence VALUES('mutes',1);
INSERT INTO sqlite_sequence VALUES('history',22);
INSERT INTO sqlite_sequence VALUES('outbox',10);
INSERT INTO sqlite_sequence VALUES('deliveries',18);
CREATE INDEX submissions_watched ON submissions (upstream, id) WHERE watched = 1;
CREATE INDEX submissions_deadline ON submissions (upstream, deadline_at) WHERE ended_at IS NULL;
CREATE INDEX submissions_stuck ON submissions (upstream) WHERE stuck = 1 AND watched = 1;
CREATE INDEX submissions_in_verification ON submissions (upstream, chain, id) WHERE in_verification = 1;
CREATE INDEX submissions_by_chain ON submissions (chain, tracked_at) WHERE chain IS NOT NULL;
CREATE INDEX submissions_by_status ON submissions (status, id);
CREATE INDEX submissions_tracked ON submissions (tracked_at);
CREATE INDEX submissions_ended ON submissions (ended_at) WHERE ended_at IS NOT NULL AND watched = 0;
CREATE INDEX submissions_ended_watched ON submissions (ended_at) WHERE ended_at IS NOT NULL AND watched = 1;
CREATE TRIGGER a_final_status_stays BEFORE UPDATE OF status ON submissions
    WHEN OLD.status IN ('finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled') AND NEW.status <> OLD.status
      AND NOT (OLD.status <> 'finalized' AND NEW.status = 'tracking' AND NEW.version = OLD.version + 1
               AND NEW.watched = 1 AND NEW.ended_at IS NULL)
    BEGIN SELECT RAISE(ABORT, 'only tracking an ended submission again changes its status'); END;
CREATE TRIGGER metadata_removed AFTER DELETE ON submissions WHEN OLD.metadata IS NOT NULL
    BEGIN DELETE FROM submission_metadata WHERE (key, value, submission) IN (
  SELECT key, CASE type WHEN 'text' THEN value ELSE OLD.metadata -> fullkey END, OLD.id
  FROM json_each(OLD.metadata)
  WHERE type NOT IN ('object', 'array') AND octet_length(key) BETWEEN 1 AND 128
    AND (type <> 'text' OR octet_length(value) <= 256)
  LIMIT 32); END;
CREATE TRIGGER metadata_changed AFTER UPDATE OF metadata ON submissions WHEN NEW.metadata IS NOT OLD.metadata
    BEGIN
      DELETE FROM submission_metadata WHERE (key, value, submission) IN (
  SELECT key, CASE type WHEN 'text' THEN value ELSE OLD.metadata -> fullkey END, OLD.id
  FROM json_each(OLD.metadata)
  WHERE type NOT IN ('object', 'array') AND octet_length(key) BETWEEN 1 AND 128
    AND (type <> 'text' OR octet_length(value) <= 256)
  LIMIT 32);
      INSERT OR IGNORE INTO submission_metadata 
  SELECT key, CASE type WHEN 'text' THEN value ELSE NEW.metadata -> fullkey END, NEW.id
  FROM json_each(NEW.metadata)
  WHERE type NOT IN ('object', 'array') AND octet_length(key) BETWEEN 1 AND 128
    AND (type <> 'text' OR octet_length(value) <= 256)
  LIMIT 32;
    END;
CREATE TRIGGER history_is_append_only BEFORE UPDATE ON history
    BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE INDEX outbox_by_submission ON outbox (submission) WHERE submission IS NOT NULL;
CREATE INDEX outbox_by_history ON outbox (history_seq) WHERE history_seq IS NOT NULL;
CREATE INDEX outbox_failures ON outbox (at) WHERE type IN ('submission.failing', 'submission.failed');
CREATE TRIGGER events_never_change BEFORE UPDATE ON outbox
    BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;
CREATE INDEX deliveries_waiting ON deliveries (destination, next_at, id) WHERE state = 'waiting';
CREATE INDEX deliveries_waiting_since ON deliveries (destination, waiting_since) WHERE state = 'waiting';
CREATE INDEX deliveries_failing ON deliveries (destination) WHERE state = 'waiting' AND attempts > 0;
CREATE INDEX deliveries_dead ON deliveries (ended_at, destination) WHERE state = 'dead';
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE state <> 'waiting';
CREATE INDEX deliveries_by_event ON deliveries (event);
CREATE INDEX deliveries_by_destination ON deliveries (destination, id);
CREATE INDEX attempts_by_delivery ON attempts (delivery, id);
CREATE TRIGGER attempts_are_append_only BEFORE UPDATE ON attempts
    BEGIN SELECT RAISE(ABORT, 'attempts are append-only'); END;
CREATE UNIQUE INDEX alerts_firing ON alerts (rule, subject) WHERE resolved_at IS NULL;
CREATE INDEX alerts_resolved ON alerts (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX mutes_by_end ON mutes (ends_at);
CREATE INDEX sessions_by_credential ON sessions (credential_hash, created_at);
CREATE INDEX sessions_by_age ON sessions (created_at);
CREATE INDEX audit_prunes ON audit (seq) WHERE action = 'audit.prune';
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_is_pruned_on_record BEFORE DELETE ON audit
    WHEN OLD.seq > coalesce((SELECT max(CAST(subject AS INTEGER)) FROM audit WHERE action = 'audit.prune'), 0)
    BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
COMMIT;
