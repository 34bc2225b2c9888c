# The crash simulation against a core in which one step of the protocol is wrong. It must find a violation: a
# simulation that no wrong protocol fails would prove nothing.
#
# A mutant is one source with one piece replaced, made in the build directory and linked before the library, so the
# core itself knows nothing of mutants. A piece that is not found exactly once stops the configuration: mutants follow
# the code.
function(cdd_add_mutant name file original replacement)
  file(READ "${PROJECT_SOURCE_DIR}/${file}" text)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
  string(FIND "${text}" "${original}" first)
  string(FIND "${text}" "${original}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "mutant ${name}: ${file} does not have this exactly once:\n${original}")
  endif()
  string(REPLACE "${original}" "${replacement}" text "${text}")
  set(mutated "${CMAKE_CURRENT_BINARY_DIR}/mutants/${name}.cpp")
  file(CONFIGURE OUTPUT "${mutated}" CONTENT "${text}" @ONLY)
  add_executable(mutant_${name} tests/rig/crash_sim.cpp "${mutated}")
  target_link_libraries(mutant_${name} PRIVATE crash_simulator cdd_core cdd_flags cdd::blake3 cdd::xxhash)
  add_test(NAME Mutant.${name} COMMAND mutant_${name} 5000000 1)
  set_tests_properties(Mutant.${name} PROPERTIES PASS_REGULAR_EXPRESSION "VIOLATED ")
endfunction()

cdd_add_mutant(SealBeforeSync core/store/index/index_writer.cpp
"    storage_->sync();
    at_.synced = true;
    whole_.synced = true;
    committed_chunks_ = at_.chunks;
    seal_full_blocks();"
"    seal_full_blocks();
    storage_->sync();
    at_.synced = true;
    whole_.synced = true;
    committed_chunks_ = at_.chunks;")

cdd_add_mutant(ProofBeforeSync core/store/index/index_writer.cpp
"    storage_->sync();
    at_.synced = true;
    whole_.synced = true;"
"    put_close_slot();
    storage_->sync();
    at_.synced = true;
    whole_.synced = true;")

# A power cut kept the proof, and slots of the append that was to overwrite it.
cdd_add_mutant(NoScrubBehindTheProof core/store/index/recovery.cpp
"  writer.clear_slots(k, kept.chunks - geometry.first_chunk(k) + (is_proven ? 1 : 0));"
"  if (!is_proven) writer.clear_slots(k, kept.chunks - geometry.first_chunk(k));")

cdd_add_mutant(LinkSyncedAlways core/store/index/index_writer.cpp
"const std::uint32_t synced = at_.synced ? slot_flags::kSynced : 0;"
"const std::uint32_t synced = slot_flags::kSynced;")

cdd_add_mutant(RollBackProvenBeforeSync core/store/index/index_writer.cpp
"  storage_->sync();
  at_.synced = true;
  whole_ = at_;"
"  put_close_slot();
  storage_->sync();
  at_.synced = true;
  whole_ = at_;")

cdd_add_mutant(TornSealKept core/store/index/recovery.cpp
"const bool is_sealed = clean ? has_whole_seal(found) :"
"const bool is_sealed = clean ? has_whole_seal(found) || true :")

cdd_add_mutant(NoScrubOfSlots core/store/index/index_writer.cpp
"if (found.size() == bytes && std::memcmp(found.data(), kZeros, bytes) == 0) continue;"
"if (found.size() <= bytes) continue;")

cdd_add_mutant(RecoveryWithoutRecordCheck core/store/index/recovery.cpp
"if (!slot || walk.record_of(kept.unbroken, *slot).empty()) break;"
"if (!slot) break;")

cdd_add_mutant(SyncedAlways core/store/index/index_writer.cpp
"slot.flags = (next.synced ? slot_flags::kSynced : 0) |"
"slot.flags = slot_flags::kSynced |")

cdd_add_mutant(LinkPastTheEndFatal core/store/index/block_walk.cpp
"if (is_sealed(k)) {"
"if (is_sealed(k) || next) {")

cdd_add_mutant(AcknowledgeBeforeSync core/store/index/index_writer.cpp
"    storage_->sync();
    at_.synced = true;
    whole_.synced = true;"
"    at_.synced = true;
    whole_.synced = true;")

cdd_add_mutant(NoSyncAfterRecovery core/store/index/recovery.cpp
"  storage.truncate(kept.end);
  storage.sync();"
"  storage.truncate(kept.end);")

# What a killed writer had not synced is kept, proven, and then lost to a power cut.
cdd_add_mutant(RecoveryProvenBeforeSync core/store/index/recovery.cpp
"    storage.sync();
    is_proven = writer.put_proof();"
"    is_proven = writer.put_proof();")

cdd_add_mutant(NoSlotCheck core/format/cdd/slot.cpp
"if (stored != check32(CheckDomain::Slot, salt, key, {bytes, kCheckAt})) return"
"if (stored == 0 && check32(CheckDomain::Slot, salt, key, {bytes, kCheckAt}) != 0) return")

# The link reached the disk, slots of the block it leads away from did not.
cdd_add_mutant(StaleLink core/store/index/block_walk.cpp
"  for (std::uint64_t k = blocks_.size(); k-- > 0 && !proven;) {"
"  for (std::uint64_t k = blocks_.size(); k-- > blocks_.size() - 1 && !proven;) {")

# Recovery put the proof where the link was, and did not come to cut off the block behind it.
cdd_add_mutant(LinkHealedOverTheProof core/store/index/block_walk.cpp
"  if (is_commit_at(link, capacity)) return std::nullopt;"
"  if (is_commit_at(link, capacity + 1)) return std::nullopt;")
