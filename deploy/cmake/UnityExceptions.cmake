# Files with names in unnamed namespaces that another file of their library has too: compiled by themselves. A file that is
# not there is ignored. Make names unique and remove the line.
set(alone
  deploy/doctor/judge.cc
  bench/plan/plan_calibration.cc
  bench/ps/peers/tcp_end.cc
  bench/ps/ps_job.cc
  bench/ps/ps_side.cc
  bench/scaling/scaling_grid.cc
  bench/scaling/scaling_table.cc
  bench/step/step_command.cc
  deploy/launch/local_roles.cc
  strategies/cluster/hello.cc
  strategies/cluster/membership.cc
  strategies/cluster/resolvers/resolve_horovod.cc
  strategies/cluster/resolvers/resolve_tf_config.cc
  strategies/cluster/resolvers/resolve_torchrun.cc
  strategies/cluster/resolvers/slurm_step.cc
  strategies/collective/tcp_ring.cc
  strategies/collective/tcp_ring_links.cc
  strategies/collective/tcp_ring_messages.cc
  strategies/collective/work_board.cc
  strategies/collective/work_progress.cc
  worker/checkpoint/sample_ranges_json.cc
  worker/input/digit_painter.cc
  worker/input/idx.cc
  worker/input/leased_batch_source.cc
  worker/input/mnist.cc
  worker/input/synthetic.cc
  worker/train/copies_file.cc
  worker/train/metrics.cc)
foreach(file IN LISTS alone)
  foreach(library models ps strategies worker deploy bench_harness bench_step bench_all_reduce bench_scaling bench_ps bench_ps_peers
                  bench_plan bench_compare bench_virtual bench_compare_report)
    if(TARGET syncopate_${library})
      set_source_files_properties(${PROJECT_SOURCE_DIR}/${file} TARGET_DIRECTORY syncopate_${library}
                                  PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endforeach()
